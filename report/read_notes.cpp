// SPDX-License-Identifier: Apache-2.0
#include "report/read_notes.h"

#include <fmt/format.h>

#include "common/messages.h"

namespace tidemark::report {

std::vector<std::string> read_notes(const recording::ReadSummary& summary) {
  std::vector<std::string> notes;
  if (summary.bad_lines > 0) {
    notes.push_back(fmt::format("note: {} of {} lines could not be used; the first is line {}: {}",
                                summary.bad_lines, summary.lines, summary.first_bad_line,
                                summary.first_bad_reason));
  }
  for (const std::string& note : summary.notes) {
    notes.push_back("note: " + note);
  }
  return notes;
}

void print_read_notes(const recording::ReadSummary& summary) {
  for (const std::string& note : read_notes(summary)) {
    print_note(note);
  }
}

}  // namespace tidemark::report
