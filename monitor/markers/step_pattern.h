// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "common/result.h"

namespace tidemark::monitor {

// `--step-regex`: finds the step number in a line of a log. The dialect is POSIX extended regular
// expressions, on bytes, plus what people write from habit: \d \D \s \S \w \W \b \B \t, escapes in
// brackets, (?:...), (?P<name>...), (?<name>...), and (?i) in front. What would mean something else
// here than in Python (lazy and possessive quantifiers, look-around, back references) is refused.
// The engine is the C library's: it needs no more stack for longer lines.
//
// Copies share the compiled form. Thread-safe.
class StepPattern {
 public:
  // The error (kUsage) names the column and what is wrong there.
  static Result<StepPattern> compile(std::string_view pattern);

  // The number in the first group, or in the whole match when the pattern has no group: its first
  // digits, of which "," and "_" may part thousands. nullopt: no match, or no number in it.
  std::optional<std::int64_t> match(std::string_view line) const;

 private:
  struct Compiled;
  explicit StepPattern(std::shared_ptr<const Compiled> compiled);

  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace tidemark::monitor
