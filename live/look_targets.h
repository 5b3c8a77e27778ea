// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/records.h"
#include "live/heap_looks.h"

namespace tidemark::live {

// The processes of a job at whose heap one looks: those that do its work, the largest first, and
// the same ones at each look, as growth takes two. Pure but for what it remembers.
class LookTargets {
 public:
  struct Options {
    std::vector<pid_t> named;  // by the user
    bool all = false;          // whatever their role
    std::size_t most = 4;
  };
  explicit LookTargets(Options options) : options_(std::move(options)) {}

  // Who is who: before of() of the same tick.
  void add(const Tick& tick);
  // No look at it is possible.
  void set_failed(const ProcessKey& key) { failed_.insert(key); }

  // For the next look.
  std::vector<HeapLookThread::Target> of(const Tick& tick);
  // Then: how many were too many.
  std::size_t left_out() const { return left_out_; }
  bool is_looked_at(const ProcessKey& key) const { return looked_.contains(key); }

 private:
  bool does_the_work(const ProcessKey& key) const;
  bool is_wanted(const ProcessSample& sample, bool has_work) const;

  const Options options_;
  std::unordered_map<ProcessKey, Role> roles_;
  std::unordered_set<ProcessKey> looked_;
  std::unordered_set<ProcessKey> failed_;
  std::size_t left_out_ = 0;
};

}  // namespace tidemark::live
