// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace tidemark::guard {

// What a program does that has to act when there is no memory left.

// Keeps a stretch of memory from being paged out; false when that is not permitted.
bool lock_region(const void* begin, std::size_t bytes);

// The same for all of this program, its code first: what it has now and what it will touch. A note
// for people when it could not be had; empty: done.
std::string lock_own_memory();

// Makes the kernel's OOM killer look elsewhere. Children inherit the score: put it up after a
// command was started and take it down before the next, or the job gets the protection too.
class OomShield {
 public:
  explicit OomShield(std::string path = "/proc/self/oom_score_adj");
  ~OomShield();
  OomShield(const OomShield&) = delete;
  OomShield& operator=(const OomShield&) = delete;

  // As far down as the kernel permits. A note for people when that is not far; empty: done.
  std::string put_up();
  void take_down();

 private:
  std::string path_;
  std::optional<int> before_;  // while it is up
};

}  // namespace tidemark::guard
