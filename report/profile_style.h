// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "report/chart_text.h"

namespace tidemark::report {

// How a report of `tidemark profile` is to look.
struct ProfileStyle {
  Glyphs glyphs = Glyphs::kAscii;
  bool colour = false;  // of a terminal
  std::size_t columns = 100;
};

// How wide and high the terminal behind a descriptor is; nullopt: it is none, or does not tell.
std::optional<std::size_t> terminal_columns(int fd);
std::optional<std::size_t> terminal_rows(int fd);

// For what is printed to this descriptor. `plain`: as if it were no terminal.
ProfileStyle style_for(int fd, bool plain);

}  // namespace tidemark::report
