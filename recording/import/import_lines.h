// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "recording/import/import_feed.h"
#include "recording/import/line_account.h"
#include "recording/import/text_input.h"
#include "recording/reader.h"

namespace tidemark::recording {

// What became of a line: nullptr when it was used, why not when it was bad (a string literal), an
// Error when the whole import has to stop.
using LineResult = Result<const char*>;
inline LineResult line_used() { return static_cast<const char*>(nullptr); }

// Feeds each line to `take_line(text, feed)` and keeps the account. Empty lines and those that
// start with '#' are not lines.
template <typename TakeLine>
Result<ReadSummary> import_lines(TextInput& input, RecordingSink& sink, TakeLine take_line) {
  ReadSummary summary;
  LineAccount account(input.name(), summary);
  ImportFeed feed(sink, account, summary);
  TextInput::Line line;
  while (input.next_line(line)) {
    if (!line.is_too_long && (line.text.empty() || line.text.front() == '#')) {
      continue;
    }
    account.count_line();
    const LineResult result =
        line.is_too_long ? LineResult("it is too long") : take_line(line.text, feed);
    if (!result) {
      return result.error();
    }
    if (*result == nullptr) {
      continue;
    }
    TIDEMARK_TRY(account.bad(input.line_number(), *result));
  }
  if (input.error()) {
    return *input.error();
  }
  TIDEMARK_TRY(feed.finish(input.name()));
  return summary;
}

}  // namespace tidemark::recording
