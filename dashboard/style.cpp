// SPDX-License-Identifier: Apache-2.0
#include "dashboard/views.h"

#include <memory>
#include <utility>

#include <ftxui/dom/node.hpp>
#include <ftxui/screen/string.hpp>

#include "common/text.h"

namespace tidemark::dashboard {

using ftxui::Color;
using ftxui::Element;
using ftxui::Elements;

namespace {

// Only once it is drawn is it known how much room there is.
class CutText final : public ftxui::Node {
 public:
  explicit CutText(std::string text) : text_(std::move(text)) {}

  void ComputeRequirement() override {
    requirement_.min_x = ftxui::string_width(text_);
    requirement_.min_y = 1;
    requirement_.flex_shrink_x = 1;
  }

  void Render(ftxui::Screen& screen) override {
    const int columns = box_.x_max - box_.x_min + 1;
    if (columns <= 0) {
      return;
    }
    const Element shown = ftxui::text(shorten(text_, static_cast<std::size_t>(columns)));
    shown->ComputeRequirement();
    shown->SetBox(box_);
    shown->Render(screen);
  }

 private:
  std::string text_;
};

}  // namespace

Element cut_text(std::string text) { return std::make_shared<CutText>(std::move(text)); }

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
    parts.push_back(is_focused ? ftxui::bold(cut_text(title)) : cut_text(title));
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

}  // namespace tidemark::dashboard
