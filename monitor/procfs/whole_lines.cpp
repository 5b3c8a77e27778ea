// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/whole_lines.h"

#include <sys/types.h>

#include <array>
#include <cstring>
#include <span>

#include "common/io.h"

namespace tidemark::monitor {
namespace {

constexpr std::size_t kPieceBytes = 32U << 10U;

}  // namespace

Status read_whole_lines(int fd, const std::function<bool(std::string_view)>& take,
                        std::size_t limit_bytes) {
  std::array<char, kPieceBytes> piece;
  std::size_t kept = 0;  // the start of a line that the last piece cut
  off_t offset = 0;
  while (static_cast<std::size_t>(offset) < limit_bytes) {
    const auto size = pread_once(fd, std::span(piece).subspan(kept), offset);
    if (!size) {
      return size.error();
    }
    const std::string_view text(piece.data(), kept + *size);
    if (*size == 0) {
      take(text);
      return ok();
    }
    offset += static_cast<off_t>(*size);
    const std::size_t end = text.rfind('\n') + 1;  // 0 when there is none
    if (end > 0 && !take(text.substr(0, end))) {
      return ok();
    }
    kept = text.size() - end;
    if (kept == piece.size()) {
      kept = 0;  // a line longer than any path: not the kernel's
    }
    std::memmove(piece.data(), piece.data() + end, kept);
  }
  return ok();
}

}  // namespace tidemark::monitor
