// SPDX-License-Identifier: Apache-2.0
#include "report/profile_style.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace tidemark::report {

std::optional<std::size_t> terminal_columns(int fd) {
  constexpr unsigned short kNarrowest = 20;
  winsize size{};
  return ::isatty(fd) == 1 && ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > kNarrowest
             ? std::optional<std::size_t>(size.ws_col)
             : std::nullopt;
}

std::optional<std::size_t> terminal_rows(int fd) {
  winsize size{};
  return ::isatty(fd) == 1 && ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row > 0
             ? std::optional<std::size_t>(size.ws_row)
             : std::nullopt;
}

ProfileStyle style_for(int fd, bool plain) {
  // Names in C++ are long: a wide terminal shows more of them, a narrow one must not break them.
  constexpr std::size_t kNarrowest = 72;
  constexpr std::size_t kWidest = 160;
  ProfileStyle style;
  style.glyphs = glyphs_of_locale();
  style.colour = !plain && ::isatty(fd) == 1;
  if (const auto columns = terminal_columns(fd)) {
    style.columns = std::clamp(*columns, kNarrowest, kWidest);
  }
  return style;
}

}  // namespace tidemark::report
