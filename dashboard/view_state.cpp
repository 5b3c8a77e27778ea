// SPDX-License-Identifier: Apache-2.0
#include "dashboard/view_state.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

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

void zoom_by(ViewState& state, int by) {
  const int at = std::clamp(static_cast<int>(state.zoom) + by, 0, static_cast<int>(Zoom::kAll));
  state.zoom = static_cast<Zoom>(at);
  if (state.zoom == Zoom::kAll) {
    state.back_s = 0.0;
  }
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
    zoom_by(state, by);  // up is closer
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

// How many lines a key moves a long help by; 0: it closes it.
std::ptrdiff_t lines_in_help(const Key& key) {
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

Command press_in_help(ViewState& state, const Key& key, const Scene& scene) {
  const std::ptrdiff_t by = lines_in_help(key);
  if (by != 0 && scene.last_help_line > 0) {
    state.help_line = static_cast<std::size_t>(
        std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(state.help_line) + by, 0,
                                   static_cast<std::ptrdiff_t>(scene.last_help_line)));
    return Command::kNone;
  }
  state.shows_help = false;
  state.help_line = 0;
  return key.text == "q" ? Command::kQuit : Command::kNone;
}

Command press_letter(ViewState& state, char letter, const Scene& scene) {
  switch (letter) {
    case 'q':
      return Command::kQuit;
    case '?':
      state.shows_help = true;
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
      state.zoom = next_of(state.zoom, static_cast<int>(Zoom::kAll) + 1);
      state.back_s = state.zoom == Zoom::kAll ? 0.0 : state.back_s;
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
    state.back_s = 0.0;
  }
}

}  // namespace

Outcome apply_key(ViewState state, const Key& key, const Scene& scene) {
  Command command = Command::kNone;
  if (key.kind == Key::Kind::kControl) {
    command = key.text == "l" ? Command::kRedraw : Command::kNone;
  } else if (state.shows_help) {
    command = press_in_help(state, key, scene);
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
        scroll_timeline(state, scene, -0.25);
        break;
      case Key::Kind::kRight:
        scroll_timeline(state, scene, 0.25);
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
  return {std::move(state), command};
}

std::optional<double> zoom_seconds(Zoom zoom) {
  static constexpr std::array<double, 3> kSeconds{60.0, 600.0, 3600.0};
  return zoom == Zoom::kAll ? std::nullopt
                            : std::optional(kSeconds[static_cast<std::size_t>(zoom)]);
}

}  // namespace tidemark::dashboard
