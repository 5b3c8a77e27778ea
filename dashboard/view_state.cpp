// SPDX-License-Identifier: Apache-2.0
#include "dashboard/view_state.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/result.h"

namespace tidemark::dashboard {
namespace {

constexpr std::size_t kLongestFilter = 64;

// Enumerators in a ring; `count` of them.
template <typename Enum>
Enum next_of(Enum value, int count, int by = 1) {
  return static_cast<Enum>((static_cast<int>(value) + by + count) % count);
}

std::size_t selected_index(const ViewState& state, const Scene& scene) {
  const auto it = state.selected ? std::find(scene.rows.begin(), scene.rows.end(), *state.selected)
                                 : scene.rows.end();
  return it == scene.rows.end() ? std::min(scene.selected, scene.rows.size() - 1)
                                : static_cast<std::size_t>(it - scene.rows.begin());
}

void move_selection(ViewState& state, const Scene& scene, std::ptrdiff_t by) {
  if (scene.rows.empty()) {
    return;
  }
  const auto last = static_cast<std::ptrdiff_t>(scene.rows.size()) - 1;
  const auto at = static_cast<std::ptrdiff_t>(selected_index(state, scene)) + by;
  state.selected = scene.rows[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(at, 0, last))];
}

void scroll_timeline(ViewState& state, const Scene& scene, double windows) {
  const double farthest = std::max(0.0, scene.span_s - scene.window_s);
  state.back_s = std::clamp(state.back_s - windows * scene.window_s, 0.0, farthest);
}

// Around the cursor, if there is one.
void set_zoom(ViewState& state, const Scene& scene, Zoom zoom) {
  state.zoom = zoom;
  const auto seconds = zoom_seconds(zoom);
  if (!seconds) {
    state.back_s = 0.0;
  } else if (state.cursor_s) {
    state.back_s = std::clamp(scene.span_s - *state.cursor_s - *seconds / 2.0, 0.0,
                              std::max(0.0, scene.span_s - *seconds));
  }
}

void zoom_by(ViewState& state, const Scene& scene, int by) {
  set_zoom(state, scene,
           static_cast<Zoom>(
               std::clamp(static_cast<int>(state.zoom) + by, 0, static_cast<int>(Zoom::kAll))));
}

double column_s(const Scene& scene) {
  return scene.window_s / static_cast<double>(std::max(1, scene.plot_columns));
}

// A window that is shorter than the run stays where it is while there is a cursor in it.
void set_cursor(ViewState& state, const Scene& scene, double t_s) {
  state.cursor_s = std::clamp(t_s, 0.0, scene.span_s);
  if (state.zoom == Zoom::kAll) {
    return;
  }
  if (state.back_s == 0.0) {
    scroll_timeline(state, scene, -column_s(scene) / std::max(scene.window_s, 1e-9));
  }
  constexpr double kPart = 0.25;
  if (*state.cursor_s < scene.window_from_s) {
    scroll_timeline(state, scene, -kPart);
  } else if (*state.cursor_s > scene.window_from_s + scene.window_s) {
    scroll_timeline(state, scene, kPart);
  }
}

// By a column of the plot. Without a cursor there is one at the newest sample.
void move_cursor(ViewState& state, const Scene& scene, int columns) {
  if (scene.span_s <= 0.0 || scene.window_s <= 0.0 || (!state.cursor_s && columns > 0)) {
    return;
  }
  const double at =
      state.cursor_s.value_or(std::min(scene.span_s, scene.window_from_s + scene.window_s));
  set_cursor(state, scene, at + columns * column_s(scene));
}

// Opens or closes the role of the selected row; a row that disappears leaves its role selected. A
// filter shows whatever it finds.
void flip_role(ViewState& state, const Scene& scene) {
  if (scene.rows.empty() || !state.filter.empty()) {
    return;
  }
  const RowId row = scene.rows[selected_index(state, scene)];
  if (!state.flipped.erase(row.role)) {
    state.flipped.insert(row.role);
  }
  state.selected = RowId{row.role, {}};
}

void press_mouse(ViewState& state, const Key& key, const Scene& scene) {
  const int row = key.y - scene.first_row_y;
  if (row >= 0 && static_cast<std::size_t>(row) < scene.rows_shown) {
    const std::size_t index = scene.first_row + static_cast<std::size_t>(row);
    state.focus = Focus::kTree;
    if (index < scene.rows.size()) {
      const bool again = state.selected == scene.rows[index];
      state.selected = scene.rows[index];
      if (again && state.selected->is_role()) {
        flip_role(state, scene);
      }
    }
  } else if (key.y >= scene.timeline_y && key.y < scene.timeline_y + scene.timeline_height) {
    state.focus = Focus::kTimeline;
    const int column = key.x - scene.plot_x;
    if (column >= 0 && column < scene.plot_columns && scene.span_s > 0.0) {
      set_cursor(state, scene, scene.window_from_s + (column + 0.5) * column_s(scene));
    }
  }
}

void turn_wheel(ViewState& state, const Key& key, const Scene& scene, int direction) {
  if (key.y >= scene.timeline_y && key.y < scene.timeline_y + scene.timeline_height) {
    scroll_timeline(state, scene, 0.25 * direction);
  } else {
    move_selection(state, scene, std::ptrdiff_t{3} * direction);
  }
}

void move_vertically(ViewState& state, const Scene& scene, int by) {
  if (state.focus == Focus::kTimeline) {
    zoom_by(state, scene, by);  // up is closer
  } else {
    move_selection(state, scene, by);
  }
}

void jump(ViewState& state, const Scene& scene, bool to_begin) {
  if (state.focus == Focus::kTimeline) {
    scroll_timeline(state, scene, to_begin ? -1e12 : 1e12);
  } else {
    move_selection(state, scene, to_begin ? -1'000'000'000 : 1'000'000'000);
  }
}

void turn_page(ViewState& state, const Scene& scene, int direction) {
  if (state.focus == Focus::kTimeline) {
    scroll_timeline(state, scene, direction);
  } else {
    const auto page = static_cast<std::ptrdiff_t>(std::max<std::size_t>(1, scene.rows_shown));
    move_selection(state, scene, direction * page);
  }
}

void remove_last_character(std::string& text) {
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0U) == 0x80U) {
    text.pop_back();
  }
  if (!text.empty()) {
    text.pop_back();
  }
}

// While a filter is typed, letters are letters.
void type_filter(ViewState& state, const Key& key) {
  switch (key.kind) {
    case Key::Kind::kText:
      if (state.filter.size() + key.text.size() <= kLongestFilter) {
        state.filter += key.text;
      }
      break;
    case Key::Kind::kBackspace:
      remove_last_character(state.filter);
      break;
    case Key::Kind::kEnter:
      state.is_typing_filter = false;
      break;
    case Key::Kind::kEscape:
      state.filter.clear();
      state.is_typing_filter = false;
      break;
    default:
      break;
  }
}

// Letters that stand for other keys.
Key::Kind kind_of(const Key& key) {
  constexpr std::string_view kLetters = "kjhlgG";
  constexpr std::array<Key::Kind, 6> kKinds{Key::Kind::kUp,    Key::Kind::kDown, Key::Kind::kLeft,
                                            Key::Kind::kRight, Key::Kind::kHome, Key::Kind::kEnd};
  const std::size_t at = key.kind == Key::Kind::kText && key.text.size() == 1
                             ? kLetters.find(key.text.front())
                             : std::string_view::npos;
  return at == std::string_view::npos ? key.kind : kKinds[at];
}

// How many lines a key moves a long text by; 0: it closes it.
std::ptrdiff_t lines_in_text(const Key& key) {
  constexpr std::ptrdiff_t kPage = 10;
  constexpr std::ptrdiff_t kAll = 1'000'000'000;
  switch (key.kind) {
    case Key::Kind::kUp:
      return -1;
    case Key::Kind::kDown:
      return 1;
    case Key::Kind::kText:
      return key.text == "k" ? -1 : key.text == "j" ? 1 : 0;
    case Key::Kind::kWheelUp:
      return -3;
    case Key::Kind::kWheelDown:
      return 3;
    case Key::Kind::kPageUp:
      return -kPage;
    case Key::Kind::kPageDown:
      return kPage;
    case Key::Kind::kHome:
      return -kAll;
    case Key::Kind::kEnd:
      return kAll;
    default:
      return 0;
  }
}

void close_overlay(ViewState& state) {
  state.overlay = Overlay::kNone;
  state.overlay_line = 0;
  state.asked_about = {};
  state.signal_number.reset();
}

Command press_in_text(ViewState& state, const Key& key, const Scene& scene) {
  const std::ptrdiff_t by = lines_in_text(key);
  if (by != 0 && scene.last_overlay_line > 0) {
    state.overlay_line = static_cast<std::size_t>(
        std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(state.overlay_line) + by, 0,
                                   static_cast<std::ptrdiff_t>(scene.last_overlay_line)));
    return Command::kNone;
  }
  close_overlay(state);
  return key.text == "q" ? Command::kQuit : Command::kNone;
}

// First which signal, then whether it is meant: nothing but `y` sends it.
Outcome press_in_signal(ViewState state, const Key& key) {
  const char letter =
      key.kind == Key::Kind::kText && key.text.size() == 1 ? key.text.front() : '\0';
  if (!state.signal_number) {
    const auto offered = offered_signals();
    const auto chosen = std::find_if(offered.begin(), offered.end(),
                                     [&](const OfferedSignal& each) { return each.key == letter; });
    if (chosen != offered.end()) {
      state.signal_number = chosen->number;
    } else {
      close_overlay(state);
    }
    return {std::move(state), Command::kNone, {}};
  }
  const SignalRequest request{state.asked_about, *state.signal_number};
  close_overlay(state);
  return letter == 'y' ? Outcome{std::move(state), Command::kSignal, request}
                       : Outcome{std::move(state), Command::kNone, {}};
}

// Nothing but `y` attaches.
Outcome press_in_attach(ViewState state, const Key& key) {
  const ProcessKey process = state.asked_about;
  close_overlay(state);
  const bool is_meant = key.kind == Key::Kind::kText && key.text == "y";
  return {std::move(state), is_meant ? Command::kAttach : Command::kNone, {}, process};
}

// Opens a question about the selected process.
Command ask(ViewState& state, Overlay question, const Scene& scene) {
  if (!scene.can_signal || scene.rows.empty()) {
    return Command::kNone;
  }
  if (question == Overlay::kAttach && scene.is_attached) {
    return Command::kNeedDetach;
  }
  const RowId row = scene.rows[selected_index(state, scene)];
  if (row.is_role()) {
    return Command::kNeedProcess;
  }
  state.selected = row;
  state.overlay = question;
  state.asked_about = row.key;
  return Command::kNone;
}

PlotRange next_range(PlotRange range, bool has_limit) {
  const PlotRange next = next_of(range, static_cast<int>(PlotRange::kToLimit) + 1);
  return next == PlotRange::kToLimit && !has_limit ? PlotRange::kFit : next;
}

Command press_letter(ViewState& state, char letter, const Scene& scene) {
  switch (letter) {
    case 'q':
      return Command::kQuit;
    case '?':
      state.overlay = Overlay::kHelp;
      break;
    case 'w':
      state.overlay = Overlay::kReasons;
      break;
    case 'K':
      return ask(state, Overlay::kSignal, scene);
    case 'A':
      return ask(state, Overlay::kAttach, scene);
    case 'D':
      return scene.is_attached ? Command::kDetach : Command::kNone;
    case 'a':
      state.range = next_range(state.range, scene.has_limit);
      break;
    case ' ':
      state.is_paused = !state.is_paused;
      break;
    case '/':
      state.is_typing_filter = true;
      break;
    case 's':
      state.sort = next_of(state.sort, static_cast<int>(SortBy::kPid) + 1);
      break;
    case 'z':
      set_zoom(state, scene, next_of(state.zoom, static_cast<int>(Zoom::kAll) + 1));
      break;
    case 'e':
      return Command::kExport;
    case 'm':
      return scene.can_mark ? Command::kMark : Command::kNone;
    default:
      break;
  }
  return Command::kNone;
}

void escape(ViewState& state) {
  if (!state.filter.empty()) {
    state.filter.clear();
  } else {
    state.cursor_s.reset();
    state.back_s = 0.0;
  }
}

}  // namespace

Outcome apply_key(ViewState state, const Key& key, const Scene& scene) {
  Command command = Command::kNone;
  if (key.kind == Key::Kind::kControl) {
    command = key.text == "l" ? Command::kRedraw : Command::kNone;
  } else if (state.overlay == Overlay::kSignal) {
    return press_in_signal(std::move(state), key);
  } else if (state.overlay == Overlay::kAttach) {
    return press_in_attach(std::move(state), key);
  } else if (state.overlay != Overlay::kNone) {
    command = press_in_text(state, key, scene);
  } else if (state.is_typing_filter) {
    type_filter(state, key);
  } else {
    switch (const Key::Kind kind = kind_of(key); kind) {
      case Key::Kind::kText:
        command =
            key.text.size() == 1 ? press_letter(state, key.text.front(), scene) : Command::kNone;
        break;
      case Key::Kind::kUp:
        move_vertically(state, scene, -1);
        break;
      case Key::Kind::kDown:
        move_vertically(state, scene, 1);
        break;
      case Key::Kind::kLeft:
        move_cursor(state, scene, -1);
        break;
      case Key::Kind::kRight:
        move_cursor(state, scene, 1);
        break;
      case Key::Kind::kHome:
      case Key::Kind::kEnd:
        jump(state, scene, kind == Key::Kind::kHome);
        break;
      case Key::Kind::kPageUp:
      case Key::Kind::kPageDown:
        turn_page(state, scene, key.kind == Key::Kind::kPageUp ? -1 : 1);
        break;
      case Key::Kind::kEnter:
        flip_role(state, scene);
        break;
      case Key::Kind::kEscape:
        escape(state);
        break;
      case Key::Kind::kTab:
        state.focus = next_of(state.focus, static_cast<int>(Focus::kTimeline) + 1);
        break;
      case Key::Kind::kMousePress:
        press_mouse(state, key, scene);
        break;
      case Key::Kind::kWheelUp:
      case Key::Kind::kWheelDown:
        turn_wheel(state, key, scene, key.kind == Key::Kind::kWheelUp ? -1 : 1);
        break;
      case Key::Kind::kBackspace:
      case Key::Kind::kControl:
        break;
    }
  }
  return {std::move(state), command, {}};
}

std::span<const OfferedSignal> offered_signals() {
  static constexpr std::array<OfferedSignal, 4> kSignals{{{'t', SIGTERM, "TERM", "asks it to end"},
                                                          {'k', SIGKILL, "KILL", "ends it at once"},
                                                          {'s', SIGSTOP, "STOP", "halts it"},
                                                          {'c', SIGCONT, "CONT", "lets it go on"}}};
  return kSignals;
}

std::string_view signal_name(int number) {
  for (const OfferedSignal& each : offered_signals()) {
    if (each.number == number) {
      return each.name;
    }
  }
  return "?";
}

std::string signal_outcome(int number, std::string_view process, int error) {
  switch (error) {
    case 0:
      return fmt::format("sent {} to {}", signal_name(number), process);
    case ESRCH:
      return fmt::format("{} has exited: nothing was sent", process);
    case EPERM:
      return fmt::format("nothing was sent: {} belongs to another user", process);
    default:
      return system_error(fmt::format("cannot signal {}", process), error).what;
  }
}

std::optional<double> zoom_seconds(Zoom zoom) {
  static constexpr std::array<double, 3> kSeconds{60.0, 600.0, 3600.0};
  return zoom == Zoom::kAll ? std::nullopt
                            : std::optional(kSeconds[static_cast<std::size_t>(zoom)]);
}

}  // namespace tidemark::dashboard
