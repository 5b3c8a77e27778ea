// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/records.h"
#include "common/result.h"
#include "live/sparse_ticks.h"
#include "live/watch_options.h"
#include "live/watch_output.h"
#include "recording/recorder.h"

namespace tidemark::live {

// The run file of a watch, if there is one. What goes wrong with it is reported once, and watching
// goes on. Not thread-safe.
class RunRecording {
 public:
  // Both outlive it.
  RunRecording(const WatchOptions& options, WatchOutput& output)
      : options_(options), output_(output) {}

  // Makes the file. A command must not start only to find that nothing can be recorded.
  Status create();
  // There is a file that somebody has asked for.
  bool is_wanted() const { return recorder_ != nullptr && !options_.is_kept; }
  bool has_begun() const { return has_begun_; }
  void begin(const RunInfo& info);
  // Before begin(): there is nothing to record, and no file is left.
  void cancel() { recorder_.reset(); }
  void add(Tick tick, const std::vector<ProcessRecord>& exited);
  void end(double t_s);
  // Something of what was asked for is missing.
  bool has_failed() const { return has_failed_; }

 private:
  void fail(const Error& error, std::string_view consequence);
  void write(Tick tick);
  void end_when_large(double t_s);

  const WatchOptions& options_;
  WatchOutput& output_;
  std::unique_ptr<recording::Recorder> recorder_;
  SparseTicks sparse_;                 // of a kept run
  std::vector<ProcessRecord> exited_;  // since the last tick that was written
  std::uint64_t ticks_ = 0;
  bool has_begun_ = false;
  bool has_failed_ = false;
};

}  // namespace tidemark::live
