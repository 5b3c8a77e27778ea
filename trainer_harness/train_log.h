// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "trainer_harness/options.h"

namespace tidemark::harness {

// The lines of a run: for people on stdout, one per step for a program on another descriptor. A
// reader that went away is no reason to stop training.
class TrainLog {
 public:
  explicit TrainLog(const TrainerOptions& options)
      : log_every_(options.log_every), progress_fd_(options.progress_fd) {}

  void say(std::string_view line);
  void step(std::uint64_t step, double loss);

 private:
  std::uint64_t log_every_;
  std::optional<int> progress_fd_;
};

// Resident memory of this process; nullopt where /proc does not say.
std::optional<std::uint64_t> own_rss_bytes();

}  // namespace tidemark::harness
