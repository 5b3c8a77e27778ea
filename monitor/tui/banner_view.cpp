// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "monitor/tui/style.h"
#include "monitor/tui/views.h"

namespace tidemark::tui {
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

Element verdict_badge(const BannerModel& banner, const Theme& theme) {
  std::string words = fmt::format(" {} {}", symbol(banner.tone, theme.utf8), banner.word);
  if (banner.confidence) {
    words += fmt::format(" {:.0f} %", *banner.confidence * 100.0);
  }
  return text(words + " ") | ftxui::bold | ftxui::inverted | tone_style(banner.tone, theme);
}

}  // namespace

Element banner_view(const BannerModel& banner, int lines, const Theme& theme) {
  const bool has_both = !banner.clock.empty() && !banner.progress.empty();
  const std::string place = banner.clock + (has_both ? "  " : "") + banner.progress;
  Elements rows;
  rows.push_back(ftxui::hbox(
      {verdict_badge(banner, theme),
       text(" " + banner.outlook) | tone_style(banner.tone, theme) | ftxui::xflex_shrink,
       ftxui::filler(), text(" " + place)}));
  rows.push_back(text(banner.finding));
  if (!banner.watched.empty()) {
    rows.push_back(
        text("watching " + banner.watched + (banner.because.empty() ? "" : ", " + banner.because)));
  }
  return exactly(std::move(rows), lines);
}

}  // namespace tidemark::tui
