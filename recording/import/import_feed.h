// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/recording_sink.h"
#include "recording/import/line_account.h"
#include "recording/reader.h"

namespace tidemark::recording {

// Builds the ticks of an imported series and delivers them. What the file does not say is made
// here: the sums of the tree and of each role.
//
// Imported figures are what they are: where the parts of the footprint of a process are unknown, so
// is the footprint of its group. RSS, or PSS, is never called a footprint.
class ImportFeed {
 public:
  ImportFeed(RecordingSink& sink, LineAccount& account, ReadSummary& summary)
      : sink_(sink), account_(account), summary_(summary) {}

  // Delivers the tick before, if there is one, and starts the next. Times do not go back. The first
  // call hands `info` to the sink.
  Status start_tick(double t_s, const RunInfo& info);
  bool has_tick() const { return has_tick_; }
  double t_s() const { return tick_.t_s; }

  // Of the current tick.
  void introduce(ProcessRecord process);
  void add(const ProcessSample& sample, Role role);
  void set_tree(const GroupSample& sum) { tree_ = sum; }
  void add_role(Role role, const GroupSample& sum) { roles_.push_back({role, sum}); }
  // These two hold until they are set again. A new epoch is also marked.
  void set_step(std::int64_t step) { tick_.step = step; }
  void set_epoch(std::int64_t epoch);
  void add_marker(MarkerRecord marker) { tick_.markers.push_back(std::move(marker)); }

  // Delivers the last tick and the end. Without any tick: an Error that `name` holds no samples.
  Status finish(const std::string& name);

 private:
  Status deliver();
  void sum_up();

  RecordingSink& sink_;
  LineAccount& account_;
  ReadSummary& summary_;
  Tick tick_;
  std::vector<Role> sample_roles_;   // beside tick_.processes
  std::optional<GroupSample> tree_;  // these two: as the file gave them
  std::vector<RoleSample> roles_;
  bool has_tick_ = false;
};

}  // namespace tidemark::recording
