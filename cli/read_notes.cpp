// SPDX-License-Identifier: Apache-2.0
#include "cli/read_notes.h"

#include <string>

#include <fmt/format.h>

#include "cli/messages.h"

namespace tidemark::cli {

void print_read_notes(const recording::ReadSummary& summary) {
  if (summary.bad_lines > 0) {
    print_note(fmt::format("note: {} of {} lines could not be used; the first is line {}: {}",
                           summary.bad_lines, summary.lines, summary.first_bad_line,
                           summary.first_bad_reason));
  }
  for (const std::string& note : summary.notes) {
    print_note("note: " + note);
  }
}

}  // namespace tidemark::cli
