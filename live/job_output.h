// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/fd.h"
#include "common/records.h"
#include "common/result.h"
#include "live/launch/launch.h"
#include "live/launch/output_relay.h"
#include "live/watch_options.h"
#include "monitor/markers/step_log.h"

namespace tidemark::live {

// What the job writes: where the output of a command goes, and the steps that are found in it or in
// a log file. Not thread-safe.
class JobOutput {
 public:
  // Without --step-regex steps are recognised, and the command's output passes through us only
  // where it cannot be read in another way. `clock` outlives it; `start_ns` is the start of the
  // run.
  static Result<JobOutput> open(const WatchOptions& options, const Clock& clock,
                                std::int64_t start_ns);

  // Before and after the command is started.
  void redirect(LaunchOptions& launch) const;
  void on_command_start();
  // Its output is passed on for as long as others have it open, or for `wait_ns` at the most.
  void on_command_exit(std::optional<std::int64_t> wait_ns);
  void copy_window_size();

  // The steps found since the last call, and what was lost of them.
  std::vector<MarkerRecord> take_steps();
  // True once: steps are recognised in the log. Not of a job that marks its steps; `tick` has what
  // it has marked.
  bool recognizes_steps(const Tick& tick);
  // What the lines look like in which they are, escaped: "step 120/1000". Empty: they are not.
  const std::string& step_lines() const { return step_lines_; }
  monitor::StepLosses take_lost();
  // That take_steps() has never given one, where the options name what is to be searched; else "".
  std::string missing_steps(const WatchOptions& options) const;

  // The output of the command passes through us and is not at its end.
  bool is_open() const;
  // Until when it is worth waiting for that end.
  std::int64_t end_ns() const { return end_ns_; }
  // Readable at the end; -1: it does not pass through us.
  int ended_fd() const { return relay_ ? relay_->ended_fd() : -1; }
  // Gives up what has not been read by now. Steps can be taken as before. The error: some of the
  // output could not be written.
  Status close();
  bool has_late_steps() const { return !late_steps_.empty(); }

 private:
  JobOutput(const Clock& clock, std::int64_t start_ns) : clock_(&clock), start_ns_(start_ns) {}
  Status open_step_source(const WatchOptions& options);
  bool follow_files(const monitor::StepFinder& steps);
  int stdout_sink() const;
  int stderr_sink() const;

  const Clock* clock_;
  std::int64_t start_ns_;
  bool stdout_is_ours_ = false;  // the command's goes to stderr
  Fd no_input_;
  Fd file_;  // see WatchOptions::command_output
  std::optional<OutputRelay> relay_;
  std::vector<monitor::LogFollower> logs_;
  std::shared_ptr<monitor::StepLineChoice> recognized_;  // nullptr: --step-regex is given
  std::string step_lines_;
  bool job_marks_steps_ = false;
  std::vector<MarkerRecord> late_steps_;  // found by close()
  monitor::StepLosses late_lost_;
  bool has_found_steps_ = false;
  std::int64_t end_ns_ = INT64_MAX;
};

// "steps: from the log, lines such as 'step 120/1000'".
std::string recognized_steps_text(std::string_view lines);

// Makes an empty, private file for the output of a command: beside the run file when there is one,
// else in the folder for temporary files, where the outputs of earlier commands are then tidied up.
// Never one that was there before.
Result<std::string> make_command_output(const std::string& run_file);

// Removes the outputs of commands in a folder for temporary files that are ours, are not among the
// last few, and were not written to for a day.
void tidy_command_outputs(const std::string& folder, std::int64_t now_wall_s);

}  // namespace tidemark::live
