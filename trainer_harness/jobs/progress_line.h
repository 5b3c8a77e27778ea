// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tidemark::harness {

// One line that a trainer wrote into its progress pipe. A trainer may be of a later version: fields
// that are missing or of another type are nullopt.
struct ProgressLine {
  std::optional<std::int64_t> step;
  std::optional<double> loss;
  std::optional<std::string> phase;
  std::optional<bool> stopped;  // at its end: it was asked to stop before its last step
};

// Reads a JSON object and skips other fields. nullopt for anything else.
std::optional<ProgressLine> parse_progress_line(std::string_view line);

}  // namespace tidemark::harness
