// SPDX-License-Identifier: Apache-2.0
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <ftxui/screen/string.hpp>

#include "common/units.h"
#include "dashboard/views.h"

namespace tidemark::dashboard {
namespace {

using ftxui::Element;
using ftxui::Elements;
using ftxui::text;

// Readable without colour: the word says it all, the symbol helps the eye.
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

Element banner_view(const BannerModel& banner, int width, int lines, const Theme& theme) {
  Elements rows = {first_line(banner, width, theme), cut_text(second_line(banner, width))};
  if (!banner.watched.empty()) {
    rows.push_back(cut_text("watching " + banner.watched +
                            (banner.because.empty() ? "" : ", " + banner.because)));
  }
  return exactly(std::move(rows), lines);
}

}  // namespace tidemark::dashboard
