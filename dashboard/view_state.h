// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
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
// What the curve is drawn against: what makes its changes visible, zero, or zero and the limit.
enum class PlotRange { kFit, kFromZero, kToLimit };
// What lies over the screen until it is closed.
enum class Overlay { kNone, kHelp, kReasons, kSignal, kAttach };

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
  PlotRange range = PlotRange::kFit;
  std::optional<double> cursor_s;  // the moment of the run whose figures are shown
  SortBy sort = SortBy::kFootprint;
  Focus focus = Focus::kTree;
  std::string filter;
  bool is_typing_filter = false;
  std::optional<RowId> selected;  // nullopt: the trainer
  std::size_t first_row = 0;      // of the tree, that was shown last: rows stay where they are
  std::set<Role> flipped;         // roles that are open though they would be closed, and vice versa
  bool is_paused = false;
  Overlay overlay = Overlay::kNone;
  std::size_t overlay_line = 0;      // of it, the first that is shown
  ProcessKey asked_about;            // of Overlay::kSignal and kAttach
  std::optional<int> signal_number;  // of Overlay::kSignal: chosen, and to be confirmed

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
  int plot_x = 0;  // of the curve, on the screen
  int plot_columns = 0;
  double span_s = 0.0;         // of the run so far
  double window_from_s = 0.0;  // of the timeline
  double window_s = 0.0;       // how long it is
  bool has_limit = false;
  bool can_mark = false;
  bool can_signal = false;            // and attach
  bool is_attached = false;           // to a process, by a key
  std::size_t last_overlay_line = 0;  // that can be the first; 0: all of it is on the screen
};

enum class Command {
  kNone,
  kQuit,
  kExport,
  kMark,
  kRedraw,
  kSignal,  // see Outcome::signal
  kAttach,  // see Outcome::attach_to
  kDetach,
  kNeedDetach,   // it is attached already
  kNeedProcess,  // a role was selected where only a process will do
};

// A signal that the user has chosen and confirmed.
struct SignalRequest {
  ProcessKey key;
  int number = 0;

  bool operator==(const SignalRequest&) const = default;
};

struct Outcome {
  ViewState state;
  Command command = Command::kNone;
  SignalRequest signal;       // of Command::kSignal
  ProcessKey attach_to = {};  // of Command::kAttach
};

// What a key does. Pure.
Outcome apply_key(ViewState state, const Key& key, const Scene& scene);

// Seconds; nullopt for the whole run.
std::optional<double> zoom_seconds(Zoom zoom);

// A signal that can be sent from the screen.
struct OfferedSignal {
  char key;
  int number;
  std::string_view name;
  std::string_view effect;
};
std::span<const OfferedSignal> offered_signals();
// "TERM"; "?" for one that is not offered.
std::string_view signal_name(int number);
// What became of a signal: `error` is 0 or an errno. "sent TERM to trainer 110".
std::string signal_outcome(int number, std::string_view process, int error);

}  // namespace tidemark::dashboard
