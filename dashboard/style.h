// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <ftxui/dom/elements.hpp>

#include "dashboard/dashboard_model.h"

// What the views of monitor/tui have in common.
namespace tidemark::dashboard {

// Of the sixteen colours that every terminal has; none without colour.
ftxui::Decorator ink(ftxui::Color::Palette16 color, const Theme& theme);
ftxui::Decorator tone_style(Tone tone, const Theme& theme);
// A line of text that gives way where there is not enough room, and shows by dots that it did: half
// a number is another number.
ftxui::Element cut_text(std::string text);
// "-- title ---------- right --": the title of a pane.
ftxui::Element title_line(const std::string& title, const std::string& right, bool is_focused,
                          const Theme& theme);
// Exactly so many lines: cut or filled up.
ftxui::Element exactly(ftxui::Elements rows, int lines);

}  // namespace tidemark::dashboard
