// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/io.h"
#include "common/records.h"
#include "common/units.h"
#include "live/heap_looks.h"

namespace tidemark::tests {

using live::LookAtHeap;
using live::MakeLook;

// Looks that are made up: a dictionary with 20 more entries of a MiB each time.
class MadeLooks {
 public:
  MakeLook make() {
    return [this](const ProcessKey& key, const std::function<bool()>& is_cancelled) -> LookAtHeap {
      const auto number = std::make_shared<std::uint64_t>(0);
      return [this, key, number, is_cancelled](double t_s, const heap::HeapExports& exports) {
        return look(key, (*number)++, t_s, exports, is_cancelled);
      };
    };
  }

  std::function<Result<HeapFacts>(HeapFacts facts)> change = [](HeapFacts facts) {
    return Result<HeapFacts>(std::move(facts));
  };
  std::atomic<bool> waits = false;  // each look until it is given up
  bool full_disk_at_dot = false;
  std::vector<std::pair<pid_t, std::uint64_t>> looks() const {
    const std::lock_guard lock(mutex_);
    return looks_;
  }
  // Time stands still in a test while this waits.
  void wait_for(std::size_t count) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (looks().size() < count && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  Result<HeapFacts> look(const ProcessKey& key, std::uint64_t number, double t_s,
                         const heap::HeapExports& exports,
                         const std::function<bool()>& is_cancelled) {
    {
      const std::lock_guard lock(mutex_);
      looks_.emplace_back(key.pid, number);
    }
    while (waits && !is_cancelled()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (exports.heapsnapshot) {
      EXPECT_TRUE(write_all(*exports.heapsnapshot, "{}"));
    }
    if (exports.dot) {
      EXPECT_TRUE(write_all(*exports.dot, "digraph of " + exports.dot_path));
    }
    if (const auto fd = full_disk_at_dot ? exports.dot : std::nullopt) {
      exports.on_error(*fd, {Errc::kNoSpace, "cannot write: No space left on device", ENOSPC});
    }
    HeapFacts facts;
    HeapFacts::OfProcess& of = facts.looks.emplace_back();
    of.look.key = key;
    of.look.t_s = t_s;
    of.look.reading = HeapReading::kFrozen;
    of.look.objects = 1000;
    of.look.new_bytes = 20 * number * kMiB;
    if (number == 0) {
      OwnerRecord owner;
      owner.owner = 1;
      owner.key = key;
      owner.path = "__main__.cache";
      owner.type = "dict";
      facts.owners.push_back(owner);
    }
    OwnerSample sample;
    sample.owner = 1;
    sample.entries = 20 * number;
    sample.grown_bytes = of.look.new_bytes;
    sample.grown_bytes_alone = of.look.new_bytes;
    of.owners.push_back(sample);
    return change(std::move(facts));
  }

  mutable std::mutex mutex_;
  std::vector<std::pair<pid_t, std::uint64_t>> looks_;
};

}  // namespace tidemark::tests
