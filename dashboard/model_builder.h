// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "dashboard/dashboard_model.h"
#include "dashboard/live_sources.h"
#include "dashboard/run_history.h"
#include "dashboard/view_state.h"
#include "report/track_words.h"
#include "tracker/run/judged_run.h"

namespace tidemark::dashboard {

// What the screen depends on besides the run itself.
struct ScreenInputs {
  bool can_mark = false;
  bool can_signal = false;   // and attach
  bool is_attached = false;  // to a process, by a key
  bool has_ended = false;
  std::optional<double> replay_speed;
  std::string message;
  std::vector<std::string> notes;
  std::string output_path;
  std::vector<std::string> output;
  std::vector<SiteRow> sites;
  std::vector<JobRow> jobs;
  // Older samples than the history has, from the run file: for the window that is looked at.
  std::vector<HistoryPoint> recorded;
  CpuShares cpu;                   // of who was looked at
  report::JudgedTarget target;     // for the next command
  std::size_t plot_columns = 100;  // that the curve was drawn with: one of them is under the cursor
};

// Puts together what is to be seen. Pure.
DashboardModel build_model(const RunHistory& history,
                           const std::optional<tracker::JudgedRun>& judged, const ViewState& state,
                           const ScreenInputs& inputs);

// The window of the timeline, in the time of the run.
struct Window {
  double from_s = 0.0;
  double to_s = 0.0;
};
Window window_of(const RunHistory& history, const ViewState& state);

// The parts of the above.
BannerModel build_banner(const RunHistory& history,
                         const std::optional<tracker::JudgedRun>& judged);
MachineModel build_machine(const std::optional<SystemSample>& system);
TimelineModel build_timeline(const RunHistory& history,
                             const std::optional<tracker::JudgedRun>& judged,
                             const ViewState& state, const ScreenInputs& inputs);
TreeModel build_tree(const RunHistory& history, const ViewState& state, const CpuShares& cpu);
std::optional<DetailModel> build_detail(const RunHistory& history,
                                        const std::optional<tracker::JudgedRun>& judged,
                                        const TreeModel& tree);
// The figures of the moment that the cursor is on; nothing where it is not in the window.
void add_cursor(TimelineModel& timeline, const RunHistory& history,
                const std::optional<tracker::JudgedRun>& judged, const ViewState& state,
                const TreeModel& tree, std::size_t plot_columns);
std::optional<OverlayModel> build_overlay(const RunHistory& history,
                                          const std::optional<tracker::JudgedRun>& judged,
                                          const ViewState& state, const ScreenInputs& inputs);
// What the next command can be for: what runs, or what has ended.
report::JudgedTarget target_of(const RunHistory& history, const ScreenInputs& inputs);

}  // namespace tidemark::dashboard
