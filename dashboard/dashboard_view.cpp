// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <ftxui/dom/node.hpp>
#include <ftxui/screen/screen.hpp>
#include <ftxui/screen/string.hpp>

#include "common/text.h"
#include "common/units.h"
#include "dashboard/layout.h"
#include "dashboard/views.h"

namespace tidemark::dashboard {
namespace {

using ftxui::Color;
using ftxui::Element;
using ftxui::Elements;
using ftxui::text;

// Names of processes and what they write may have any character.
void replace_all_but_ascii(ftxui::Screen& screen) {
  for (int y = 0; y < screen.dimy(); ++y) {
    for (int x = 0; x < screen.dimx(); ++x) {
      std::string& character = screen.at(x, y);
      if (character.size() != 1 || static_cast<unsigned char>(character[0]) >= 0x80U) {
        character.assign(1, '?');  // also the empty second half of a wide one
      }
    }
  }
}

ftxui::Screen draw(const DashboardModel& model, int width, int height, const Theme& theme) {
  ftxui::Screen screen(std::max(1, width), std::max(1, height));
  const Layout layout = plan_layout(model, width, height);
  ftxui::Render(screen, dashboard_view(model, layout, theme));
  if (!theme.utf8) {
    replace_all_but_ascii(screen);
  }
  return screen;
}

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

// Readable without colour: the word is enough, the symbol is seen faster.
std::string_view symbol(Tone tone, bool utf8) {
  switch (tone) {
    case Tone::kGood:
      return utf8 ? "✓" : "ok";
    case Tone::kWatch:
      return utf8 ? "▲" : "?";
    case Tone::kBad:
      return utf8 ? "✗" : "!!";
    case Tone::kUnknown:
      break;
  }
  return utf8 ? "…" : "..";
}

std::string badge_words(const BannerModel& banner, const Theme& theme) {
  std::string words = fmt::format(" {} {}", symbol(banner.tone, theme.utf8), banner.word);
  if (banner.confidence) {
    words += " " + format_percent(*banner.confidence);
  }
  return words + " ";
}

bool fits(int width, std::initializer_list<std::string_view> texts) {
  for (const std::string_view part : texts) {
    width -= ftxui::string_width(std::string(part));
  }
  return width >= 0;
}

// The verdict, the outlook, and where the run is. Its progress is what can be missed first.
Element first_line(const BannerModel& banner, int width, const Theme& theme) {
  const std::string badge = badge_words(banner, theme);
  const std::string outlook = " " + banner.outlook;
  const bool has_both = !banner.clock.empty() && !banner.progress.empty();
  std::string place = " " + banner.clock + (has_both ? "  " : "") + banner.progress;
  if (has_both && !fits(width, {badge, outlook, place})) {
    place = " " + banner.clock;
  }
  return ftxui::hbox({text(badge) | ftxui::bold | ftxui::inverted | tone_style(banner.tone, theme),
                      cut_text(outlook) | tone_style(banner.tone, theme), ftxui::filler(),
                      text(place)});
}

// Whose growth it is, and how much; where not both have room, how much.
std::string second_line(const BannerModel& banner, int width) {
  if (banner.whose.empty()) {
    return banner.finding;
  }
  std::string line = banner.whose + ": " + banner.finding;
  return fits(width, {line}) ? line : banner.finding + " (" + banner.whose + ")";
}

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

Element banner_view(const BannerModel& banner, int width, int lines, const Theme& theme) {
  Elements rows = {first_line(banner, width, theme), cut_text(second_line(banner, width))};
  if (!banner.watched.empty()) {
    rows.push_back(cut_text("watching " + banner.watched +
                            (banner.because.empty() ? "" : ", " + banner.because)));
  }
  if (!banner.next.empty()) {
    rows.push_back(cut_text("next: " + banner.next));
  }
  return exactly(std::move(rows), lines);
}

Element dashboard_view(const DashboardModel& model, const Layout& layout, const Theme& theme) {
  if (layout.is_too_small) {
    return small_view(model, theme);
  }
  const int width = layout.width;
  Elements parts = {banner_view(model.banner, width, layout.banner, theme)};
  if (layout.machine > 0) {
    parts.push_back(machine_view(model.machine, width, theme));
  }
  parts.push_back(timeline_view(model.timeline, layout, theme));
  if (layout.gpu > 0) {
    parts.push_back(gpu_view(model.gpus, width, layout.gpu, theme));
  }
  if (layout.sites > 0) {
    parts.push_back(sites_view(model.sites, width, layout.sites, theme));
  }
  if (layout.jobs > 0) {
    parts.push_back(jobs_view(model.jobs, width, layout.jobs, theme));
  }
  parts.push_back(tree_view(model.tree, width, layout.tree, theme));
  if (layout.detail > 0 && model.detail) {
    parts.push_back(detail_view(*model.detail, width, layout.detail, theme));
  }
  if (layout.output > 0) {
    parts.push_back(output_view(model, width, layout.output, theme));
  }
  parts.push_back(status_view(model.status, width, theme));
  Element screen = ftxui::vbox(std::move(parts));
  return model.overlay
             ? ftxui::dbox(
                   {screen, ftxui::center(overlay_view(
                                *model.overlay, overlay_page(*model.overlay, layout), theme))})
             : screen;
}

std::vector<std::string> screen_lines(const DashboardModel& model, int width, int height,
                                      const Theme& theme) {
  const std::string drawn = draw(model, width, height, theme).ToString();
  std::vector<std::string> lines;
  std::string_view rest = drawn;
  while (const auto line = next_line(rest)) {  // without its \r
    lines.emplace_back(*line);
  }
  return lines;
}

std::vector<std::string> screen_text(const DashboardModel& model, int width, int height,
                                     const Theme& theme) {
  const ftxui::Screen screen = draw(model, width, height, theme);
  std::vector<std::string> lines;
  for (int y = 0; y < screen.dimy(); ++y) {
    std::string line;
    for (int x = 0; x < screen.dimx(); ++x) {
      line += screen.at(x, y);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace tidemark::dashboard
