// SPDX-License-Identifier: Apache-2.0
#include "recording/import/line_account.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace tidemark::recording {

Status LineAccount::bad(std::uint64_t line_number, std::string_view reason) {
  if (summary_.bad_lines == 0) {
    summary_.first_bad_line = line_number;
    summary_.first_bad_reason = reason;
  }
  ++summary_.bad_lines;
  constexpr std::uint64_t kAlwaysAllowed = 10;
  if (summary_.bad_lines <= std::max(kAlwaysAllowed, summary_.lines / 100)) {
    return ok();
  }
  return Error{Errc::kMalformed,
               fmt::format("{0}: {1} {2}: {3}; {4} of {5} {1}s could not be used (the first: {1} "
                           "{6}, {7})",
                           name_, unit_, line_number, reason, summary_.bad_lines, summary_.lines,
                           summary_.first_bad_line, summary_.first_bad_reason)};
}

std::uint64_t LineAccount::take_new() {
  return summary_.bad_lines - std::exchange(told_, summary_.bad_lines);
}

}  // namespace tidemark::recording
