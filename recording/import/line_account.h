// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "common/result.h"
#include "recording/reader.h"

namespace tidemark::recording {

// Counts lines that cannot be used, and says when there are too many to go on: more than 10 and
// more than 1 % of the lines so far.
class LineAccount {
 public:
  // `unit` is what the file is made of, when that is not lines.
  LineAccount(std::string name, ReadSummary& summary, std::string_view unit = "line")
      : name_(std::move(name)), summary_(summary), unit_(unit) {}

  void count_line() { ++summary_.lines; }
  // An Error that names the file, the line and the reason when this was one too many.
  Status bad(std::uint64_t line_number, std::string_view reason);
  // Bad lines since this was last asked.
  std::uint64_t take_new();

 private:
  std::string name_;
  ReadSummary& summary_;
  std::string_view unit_;
  std::uint64_t told_ = 0;
};

}  // namespace tidemark::recording
