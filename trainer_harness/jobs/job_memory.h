// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace tidemark::harness {

// Anonymous + shared memory + swap of a process and its descendants, each shared page once.
// nullopt when the process cannot be read; descendants that vanish meanwhile are left out.
std::optional<std::uint64_t> tree_footprint_bytes(const std::string& proc_root, pid_t root);

// The same of one process alone.
std::optional<std::uint64_t> own_footprint_bytes(const std::string& proc_root, pid_t pid);

// Calls a function again and again on a thread of its own, from construction to finish(), and keeps
// the highest value, so that a peak between two steps counts as well.
class PeakMeter {
 public:
  using ReadBytes = std::function<std::optional<std::uint64_t>()>;
  explicit PeakMeter(ReadBytes read_bytes);
  ~PeakMeter();
  PeakMeter(const PeakMeter&) = delete;
  PeakMeter& operator=(const PeakMeter&) = delete;

  std::optional<std::uint64_t> peak() const;
  std::optional<std::uint64_t> finish();

 private:
  void measure();
  std::chrono::nanoseconds read_once();

  ReadBytes read_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::optional<std::uint64_t> peak_;
  std::thread thread_;
};

}  // namespace tidemark::harness
