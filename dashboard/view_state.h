// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/process_key.h"
#include "common/records.h"
#include "dashboard/key_decoder.h"

namespace tidemark::dashboard {

// How much of the run the timeline shows.
enum class Zoom { kMinute, kTenMinutes, kHour, kAll };
enum class SortBy { kFootprint, kRss, kChange, kRate, kPid };
// What the arrow keys move.
enum class Focus { kTree, kTimeline };

// A line of the tree: a role with all its processes (key.pid is 0), or one process.
struct RowId {
  Role role = Role::kOther;
  ProcessKey key;

  bool is_role() const { return key.pid == 0; }
  bool operator==(const RowId&) const = default;
};

// What the user has chosen to see. Only keys change it, and `first_row` whatever is drawn.
struct ViewState {
  Zoom zoom = Zoom::kAll;
  double back_s = 0.0;  // how long before the newest sample the timeline ends
  SortBy sort = SortBy::kFootprint;
  Focus focus = Focus::kTree;
  std::string filter;
  bool is_typing_filter = false;
  std::optional<RowId> selected;  // nullopt: the trainer
  std::size_t first_row = 0;      // of the tree, that was shown last: rows stay where they are
  std::set<Role> flipped;         // roles that are open though they would be closed, and vice versa
  bool is_paused = false;
  bool shows_help = false;
  std::size_t help_line = 0;  // of it, the first that is shown

  bool operator==(const ViewState&) const = default;
};

// What is on the screen, as far as keys and the mouse depend on it.
struct Scene {
  std::vector<RowId> rows;   // of the tree, all of them, in their order
  std::size_t selected = 0;  // of `rows`
  std::size_t first_row = 0;
  std::size_t rows_shown = 0;
  int first_row_y = 0;  // on the screen, from 0
  int timeline_y = 0;
  int timeline_height = 0;
  double span_s = 0.0;    // of the run so far
  double window_s = 0.0;  // of the timeline
  bool can_mark = false;
  std::size_t last_help_line = 0;  // that can be the first; 0: all of the help is on the screen
};

enum class Command { kNone, kQuit, kExport, kMark, kRedraw };

struct Outcome {
  ViewState state;
  Command command = Command::kNone;
};

// What a key does. Pure.
Outcome apply_key(ViewState state, const Key& key, const Scene& scene);

// Seconds; nullopt for the whole run.
std::optional<double> zoom_seconds(Zoom zoom);

}  // namespace tidemark::dashboard
