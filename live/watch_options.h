// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/recording_sink.h"
#include "common/result.h"
#include "common/units.h"
#include "monitor/sampler_plans.h"

namespace tidemark::live {

// What a command works on; exactly one of them is given.
struct TargetOptions {
  std::vector<pid_t> pids;
  bool find_training = false;
  bool system = false;
  std::vector<std::string> command;
};

// `--step-regex off`: the log is not read, and the command writes to our descriptors.
inline constexpr std::string_view kNoStepRegex = "off";

// What all commands that watch a target have in common.
struct WatchOptions {
  TargetOptions target;
  std::int64_t interval_ns = kNsPerSecond;
  std::optional<std::int64_t> duration_ns;
  bool json = false;
  std::string output;  // run file; empty: none
  bool force = false;
  bool output_is_optional =
      false;  // a run file that cannot be made is told of, and no reason to end
  // `output` is a file of ours, see keep_run(): where it cannot be written it is missing, and that
  // is no failure.
  bool is_kept = false;
  monitor::PssMode pss = monitor::PssMode::kAuto;
  bool redact = true;
  std::optional<Rate> warn_growth;  // nullopt: 5 % of the limit per minute
  bool warn = true;
  std::string step_regex;  // empty: steps are recognised
  std::string log_file;
  // Where the output of the command goes when a screen of ours is on the terminal; it gets no input
  // then. Empty: it has the terminal to itself.
  std::string command_output;
  // The command is ended after this time, with all that is left of its tree.
  std::optional<std::int64_t> end_after_ns;
  RecordingSink* also = nullptr;  // gets the run as well; outlives it
};

}  // namespace tidemark::live
