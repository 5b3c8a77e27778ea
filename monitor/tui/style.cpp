// SPDX-License-Identifier: Apache-2.0
#include "monitor/tui/style.h"

#include <utility>

namespace tidemark::tui {

using ftxui::Color;
using ftxui::Element;
using ftxui::Elements;

ftxui::Decorator ink(Color::Palette16 color, const Theme& theme) {
  return theme.color ? ftxui::color(Color(color)) : ftxui::nothing;
}

ftxui::Decorator tone_style(Tone tone, const Theme& theme) {
  switch (tone) {
    case Tone::kGood:
      return ink(Color::Green, theme);
    case Tone::kWatch:
      return ink(Color::Yellow, theme);
    case Tone::kBad:
      return ink(Color::Red, theme);
    case Tone::kUnknown:
      break;
  }
  return ftxui::nothing;
}

Element title_line(const std::string& title, const std::string& right, bool is_focused,
                   const Theme& theme) {
  const std::string rule = theme.utf8 ? "─" : "-";
  Elements parts = {ftxui::text(rule + rule)};
  if (!title.empty()) {
    parts.push_back(ftxui::text(" "));
    parts.push_back((is_focused ? ftxui::bold(ftxui::text(title)) : ftxui::text(title)) |
                    ftxui::xflex_shrink);
    parts.push_back(ftxui::text(" "));
  }
  parts.push_back(ftxui::separatorCharacter(rule) | ftxui::xflex);
  if (!right.empty()) {
    parts.push_back(ftxui::text(" " + right + " " + rule));
  }
  return ftxui::hbox(std::move(parts)) | ink(is_focused ? Color::CyanLight : Color::Cyan, theme);
}

Element exactly(Elements rows, int lines) {
  if (rows.size() > static_cast<std::size_t>(lines)) {
    rows.resize(static_cast<std::size_t>(lines));
  }
  return ftxui::vbox(std::move(rows)) | ftxui::size(ftxui::HEIGHT, ftxui::EQUAL, lines);
}

}  // namespace tidemark::tui
