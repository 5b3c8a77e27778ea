// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cli/line_writer.h"
#include "cli/process_lookup.h"
#include "common/records.h"
#include "monitor/run_summary.h"

namespace tidemark::cli {

// What `monitor` shows: lines for people, or JSON.
class MonitorView {
 public:
  virtual ~MonitorView() = default;
  // Before the first tick.
  virtual void begin(const RunInfo& info) = 0;
  virtual void tick(const Tick& tick, const ProcessKey& trainer, const ProcessLookup& lookup) = 0;
  virtual void end(const monitor::RunSummary& summary) = 0;
};

// `lines` must outlive the view.
std::unique_ptr<MonitorView> make_plain_view(LineWriter& lines);
std::unique_ptr<MonitorView> make_json_view(LineWriter& lines);

}  // namespace tidemark::cli
