// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "common/recording_sink.h"

namespace tidemark::report {

struct ExportOptions {
  std::string input;           // any recording that we read; "-": the standard input
  std::string format = "csv";  // "jsonl", "tidemark"; of sites: "folded", "pprof", "speedscope"
  std::string output;          // empty or "-": the standard output (not for "tidemark")
  bool force = false;          // replace an existing file
  // Of sites: growth between two times of the run. Without `from_s`: what lives at `to_s`.
  std::optional<double> from_s = std::nullopt;
  std::optional<double> to_s = std::nullopt;
};

// `tidemark export`: converts a recording. The output file appears when it is complete, and never
// replaces another without `force`. Notes and errors go to stderr.
int run_export(const ExportOptions& options);

// Masks the secrets of command lines that other tools logged as they were. `next` outlives it.
class RedactingSink final : public RecordingSink {
 public:
  explicit RedactingSink(RecordingSink& next) : next_(next) {}

  Status begin(const RunInfo& info) override;
  Status add(const Tick& tick) override;
  Status process_ended(const ProcessRecord& process) override;
  Status end(double t_s) override { return next_.end(t_s); }

 private:
  RecordingSink& next_;
};

}  // namespace tidemark::report
