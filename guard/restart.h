// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tidemark::guard {

// Why a command has ended.
enum class EndedBy { kItself, kUser, kGuard, kOomKiller };

// What is known when a command has ended that is to be started again after it was stopped.
struct ChunkEnd {
  EndedBy by = EndedBy::kItself;
  std::optional<std::int64_t> last_step;
};

// Whether to start it again, and why or why not, for people.
struct RestartAnswer {
  bool restarts = false;
  std::string why;  // empty: there is nothing to tell
};

// Counts restarts and asks for progress between two of them. Pure.
class RestartLedger {
 public:
  RestartLedger(bool enabled, std::uint64_t most) : enabled_(enabled), most_(most) {}

  RestartAnswer ended(const ChunkEnd& end);
  std::uint64_t restarts() const { return restarts_; }

 private:
  bool enabled_;
  std::uint64_t most_;
  std::uint64_t restarts_ = 0;
  std::optional<std::int64_t> best_step_;
  bool went_without_steps_ = false;
};

// "night.tidemark", "night.2.tidemark", ...: the run file of the n-th start, from 1 on.
std::string chunk_output(const std::string& output, std::uint64_t n);

}  // namespace tidemark::guard
