// SPDX-License-Identifier: Apache-2.0
#include "dashboard/frame_painter.h"

#include <utility>

#include <fmt/format.h>

namespace tidemark::dashboard {

std::string FramePainter::paint(std::vector<std::string> lines, const TerminalSize& size) {
  std::string bytes;
  if (shown_.empty() || size_ != size) {
    bytes = "\x1b[0m\x1b[2J";
    shown_.assign(lines.size(), "");
    size_ = size;
  }
  shown_.resize(lines.size());
  for (std::size_t y = 0; y < lines.size(); ++y) {
    if (lines[y] != shown_[y]) {
      bytes += fmt::format("\x1b[{};1H{}", y + 1, lines[y]);
    }
  }
  shown_ = std::move(lines);
  return bytes;
}

}  // namespace tidemark::dashboard
