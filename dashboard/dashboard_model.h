// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dashboard/run_history.h"
#include "dashboard/view_state.h"

// What the screen shows, as plain data: every name is escaped, nothing is formatted for a size.
namespace tidemark::dashboard {

// Which characters the terminal may be given, and whether colours.
struct Theme {
  bool utf8 = true;
  bool color = true;
};

enum class Tone { kUnknown, kGood, kWatch, kBad };

struct BannerModel {
  Tone tone = Tone::kUnknown;
  std::string word = "WAITING";  // "LEAK", "STABLE", ...
  std::optional<double> confidence;
  std::string whose;     // "the tree, mostly trainer 110"; empty: unknown
  std::string finding;   // what it does: "+5.0 MiB/step since step 25"
  std::string outlook;   // "limit 23.5 GiB in 14 min to 19 min", "settles near ..."
  std::string watched;   // "trainer, pid 25510 (train.py)"
  std::string because;   // why that is not the wrapper
  std::string clock;     // "00:03:20"; empty: the run has no time
  std::string progress;  // "step 124, epoch 2"
  std::string next;      // the next command to type and what it is good for
};

// The machine that the run is on, or the control group that bounds it. The first figures are missed
// most.
struct MachineModel {
  Tone tone = Tone::kUnknown;        // kWatch: little is left; kBad: next to nothing
  std::optional<double> used_share;  // of its memory
  std::vector<std::string> figures;  // "used 21.3 GiB of 31.2 GiB", "pressure 3 %"; empty: unknown
};

struct TimelineMark {
  double t_s = 0.0;
  char letter = '?';
  Tone tone = Tone::kUnknown;
};

struct TimelinePhase {
  double from_s = 0.0;
  double to_s = 0.0;
  std::string name;
  std::size_t kind = 0;  // the same for the same name, see HistoryPhase
};

struct TimelineModel {
  std::string title;  // "footprint of the tree, last 10 min"
  double from_s = 0.0;
  double to_s = 0.0;
  std::vector<HistoryPoint> points;  // in the order of time
  std::vector<HistoryPoint> floor;   // low-water line, likewise; only min_bytes counts
  std::vector<TimelineMark> marks;
  std::vector<TimelinePhase> phases;
  std::optional<double> limit_bytes;
  std::optional<std::int64_t> from_step;
  std::optional<std::int64_t> to_step;
  bool time_is_steps = false;  // all times here count steps
  std::string last_event;      // newest event in the window, in words
  PlotRange range = PlotRange::kFit;
  std::optional<double> cursor_s;      // in the window
  std::vector<std::string> at_cursor;  // its figures, those first that are missed most
  bool is_focused = false;
};

// A role or a process. Unknown is nullopt.
struct TreeRow {
  RowId id;
  std::string name;     // "compile_worker x20", "25510"
  std::string command;  // of a process
  std::optional<std::uint64_t> footprint_bytes;
  bool footprint_held = false;  // partly carried over
  std::optional<std::uint64_t> rss_bytes;
  std::optional<std::uint64_t> pss_bytes;
  std::optional<double> pss_age_s;
  std::optional<std::uint64_t> swap_bytes;
  std::optional<std::int64_t> change_bytes;  // since it was first seen
  std::optional<double> rate_bytes_per_s;  // over the last minute; see TreeModel::rate_is_per_step
  std::optional<double> cpu_share;         // 1.0: a whole core
  std::optional<std::uint64_t> gpu_bytes;
  bool is_role = false;
  bool is_open = true;  // of a role
  bool is_trainer = false;
  bool is_zombie = false;
};

struct TreeModel {
  std::uint32_t processes = 0;
  bool has_ended = false;  // all of it: the rows are of the last who was there
  TreeRow total;
  std::vector<TreeRow> rows;
  std::size_t selected = 0;
  std::size_t first_row = 0;  // that was shown last
  std::string filter;
  bool is_typing_filter = false;
  SortBy sort = SortBy::kFootprint;
  bool is_focused = true;
  bool shows_gpu = false;
  bool shows_swap = false;
  bool shows_cpu = false;
  bool rate_is_per_step = false;  // the run has no time: over the last 60 steps
};

struct DetailModel {
  std::string title;               // "trainer 25510"
  std::vector<std::string> lines;  // facts, the most telling first
  std::vector<double> curve;       // its footprint over its life, evenly spaced
};

struct GpuModel {
  std::string name;  // "gpu0 A100-SXM4-40GB"
  std::optional<std::uint64_t> used_bytes;
  std::optional<std::uint64_t> total_bytes;
  std::string processes;  // "trainer 25510 3.9 GiB, ..."
  std::optional<std::uint32_t> busy_percent;
  bool is_lost = false;
  double age_s = 0.0;  // 0: of now
};

// A line of code that holds growing memory.
struct SiteRow {
  std::string place;  // "train.py:42 collate"
  std::string verdict;
  std::optional<double> rate_bytes_per_s;
  std::optional<std::uint64_t> live_bytes;
};

// A job of a job server.
struct JobRow {
  std::string name;   // "2 warmup --mb 100", escaped
  std::string state;  // "running"
  std::optional<std::int64_t> step;
  std::optional<std::uint64_t> peak_bytes;
  std::optional<std::int64_t> kept_bytes;  // after it ended, against before
};

struct StatusModel {
  std::string message;  // the newest thing to say; empty: the keys
  std::string state;    // "PAUSED", "ENDED", "REPLAY 20x", or empty
  std::vector<std::string> keys;
};

// A line of text, which may have to be wrapped: all of it stands to the right of the label.
struct OverlayLine {
  std::string label;
  std::string text;
};

// A text over the screen.
struct OverlayModel {
  std::string title;
  std::vector<OverlayLine> lines;
  std::size_t first_line = 0;  // that is shown, once the lines are wrapped
  bool is_question = false;    // it says itself which keys it takes
};

struct DashboardModel {
  BannerModel banner;
  MachineModel machine;
  TimelineModel timeline;
  TreeModel tree;
  std::optional<DetailModel> detail;
  std::vector<GpuModel> gpus;
  std::vector<SiteRow> sites;
  std::vector<JobRow> jobs;
  std::vector<std::string> output;  // last lines of the command
  std::string output_path;          // empty: there is no command
  StatusModel status;
  std::optional<OverlayModel> overlay;
};

}  // namespace tidemark::dashboard
