// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/jobs/progress_line.h"

#include "common/text.h"

namespace tidemark::harness {
namespace {

// Walks over the text of one flat JSON object.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}

  bool take(char wanted) {
    skip_blanks();
    if (rest_.empty() || rest_.front() != wanted) {
      return false;
    }
    rest_.remove_prefix(1);
    return true;
  }

  bool at_end() {
    skip_blanks();
    return rest_.empty();
  }

  // A string without its quotes. Escapes stay as they are written: names of phases have none.
  std::optional<std::string_view> take_string() {
    if (!take('"')) {
      return std::nullopt;
    }
    for (std::size_t i = 0; i < rest_.size(); ++i) {
      if (rest_[i] == '\\') {
        ++i;
      } else if (rest_[i] == '"') {
        const std::string_view text = rest_.substr(0, i);
        rest_.remove_prefix(i + 1);
        return text;
      }
    }
    return std::nullopt;
  }

  // A number, true, false or null, as it is written.
  std::string_view take_word() {
    skip_blanks();
    const std::string_view word = rest_.substr(0, rest_.find_first_of(" \t,}]\""));
    rest_.remove_prefix(word.size());
    return word;
  }

 private:
  void skip_blanks() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t')) {
      rest_.remove_prefix(1);
    }
  }

  std::string_view rest_;
};

bool take_field(Cursor& cursor, ProgressLine& line) {
  const auto name = cursor.take_string();
  if (!name || !cursor.take(':')) {
    return false;
  }
  if (const auto text = cursor.take_string()) {
    if (*name == "phase") {
      line.phase = std::string(*text);
    }
    return true;
  }
  const std::string_view word = cursor.take_word();
  if (word.empty()) {
    return false;
  }
  if (*name == "step") {
    line.step = parse_number<std::int64_t>(word);
  } else if (*name == "loss") {
    line.loss = parse_number<double>(word);
  } else if (*name == "stopped" && (word == "true" || word == "false")) {
    line.stopped = word == "true";
  }
  return true;
}

}  // namespace

std::optional<ProgressLine> parse_progress_line(std::string_view line) {
  Cursor cursor(line);
  ProgressLine parsed;
  if (!cursor.take('{')) {
    return std::nullopt;
  }
  if (!cursor.take('}')) {
    do {
      if (!take_field(cursor, parsed)) {
        return std::nullopt;
      }
    } while (cursor.take(','));
    if (!cursor.take('}')) {
      return std::nullopt;
    }
  }
  return cursor.at_end() ? std::optional(parsed) : std::nullopt;
}

}  // namespace tidemark::harness
