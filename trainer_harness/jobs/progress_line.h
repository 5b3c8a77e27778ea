// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tidemark::harness {

// One line that a trainer wrote into its progress pipe. A trainer may be killed in the middle of
// a line or write what a later version knows: fields that are not there are nullopt.
struct ProgressLine {
  std::optional<std::int64_t> step;
  std::optional<double> loss;
  std::optional<std::string> phase;
  std::optional<bool> stopped;  // at its end: before the last step, because it was asked to
};

// Of a JSON object, whose other fields are skipped. nullopt for anything else.
std::optional<ProgressLine> parse_progress_line(std::string_view line);

}  // namespace tidemark::harness
