// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "common/result.h"

namespace tidemark::monitor {

// What a search of one line gave.
struct StepSearch {
  std::optional<std::int64_t> step;  // nullopt: no match, or no number in it
  bool gave_up = false;    // the pattern would have taken too long on this line: nothing is known
  std::uint32_t work = 0;  // how often an item of the pattern was tried
};

// `--step-regex`: finds the step number in a line of a log. Patterns are those of Perl (PCRE2),
// on bytes: lines may hold NUL and invalid UTF-8. The work on a line is bounded, whatever pattern
// and line are.
//
// Copies share the compiled form. Thread-safe.
class StepPattern {
 public:
  // The error (kUsage) names the column and what is wrong there.
  static Result<StepPattern> compile(std::string_view pattern);

  // The number in the first group, or in the whole match when the pattern has no group: its first
  // digits, of which "," and "_" may part thousands.
  StepSearch search(std::string_view line) const;

 private:
  struct Compiled;
  explicit StepPattern(std::shared_ptr<const Compiled> compiled);

  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace tidemark::monitor
