// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "cli/monitor_lines.h"
#include "common/records.h"
#include "common/result.h"
#include "monitor/limits.h"
#include "monitor/run_summary.h"

namespace tidemark::cli {

// What `monitor` shows: lines for people, or JSON. An error means that nobody reads any more.
class MonitorView {
 public:
  virtual ~MonitorView() = default;
  // Before the first tick.
  virtual Status begin(const RunInfo& info) = 0;
  virtual Status tick(const Tick& tick, const ProcessKey& trainer, const ProcessLookup& lookup) = 0;
  virtual Status end(const monitor::RunSummary& summary) = 0;
};

// Lines go to `fd`: stdout, or stderr beside a command that keeps stdout.
std::unique_ptr<MonitorView> make_plain_view(int fd);
std::unique_ptr<MonitorView> make_json_view(int fd);

}  // namespace tidemark::cli
