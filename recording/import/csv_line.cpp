// SPDX-License-Identifier: Apache-2.0
#include "recording/import/csv_line.h"

#include <algorithm>

namespace tidemark::recording {
namespace {

// Takes a quoted field off the front of `line`. False: it has no closing quote.
bool take_quoted(std::string_view& line, std::string& scratch, std::string_view& field) {
  const std::size_t start = scratch.size();
  line.remove_prefix(1);
  while (true) {
    const std::size_t quote = line.find('"');
    if (quote == std::string_view::npos) {
      return false;
    }
    scratch += line.substr(0, quote);
    line.remove_prefix(quote + 1);
    if (!line.starts_with('"')) {
      field = std::string_view(scratch).substr(start);
      return true;
    }
    scratch += '"';
    line.remove_prefix(1);
  }
}

// A formula, with or without apostrophes in front: counting those in keeps the mark reversible.
bool looks_like_formula(std::string_view text) {
  const std::size_t start = text.find_first_not_of('\'');
  return start != std::string_view::npos &&
         std::string_view("=+-@\t\r").find(text[start]) != std::string_view::npos;
}

}  // namespace

bool split_csv_line(std::string_view line, char separator, std::vector<std::string_view>& fields,
                    std::string& scratch) {
  fields.clear();
  scratch.clear();
  scratch.reserve(line.size());  // never holds more than the line: views into it stay valid
  while (true) {
    std::string_view field;
    if (line.starts_with('"')) {
      if (!take_quoted(line, scratch, field)) {
        return false;
      }
    } else {
      field = line.substr(0, line.find(separator));
      line.remove_prefix(field.size());
    }
    fields.push_back(field);
    if (line.empty()) {
      return true;
    }
    if (line.front() != separator) {
      return false;
    }
    line.remove_prefix(1);
  }
}

void append_csv_field(std::string& line, std::string_view field) {
  if (field.find_first_of(",;\t\"\r\n#") == std::string_view::npos) {
    line += field;
    return;
  }
  line += '"';
  for (const char c : field) {
    line += c;
    if (c == '"') {
      line += c;
    }
  }
  line += '"';
}

void append_csv_text(std::string& line, std::string_view text) {
  if (looks_like_formula(text)) {
    append_csv_field(line, std::string("'").append(text));
  } else {
    append_csv_field(line, text);
  }
}

std::string_view plain_csv_text(std::string_view field) {
  const bool is_marked = field.starts_with('\'') && looks_like_formula(field);
  return is_marked ? field.substr(1) : field;
}

}  // namespace tidemark::recording
