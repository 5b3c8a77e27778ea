// SPDX-License-Identifier: Apache-2.0
// The only file of the harness that sees nlohmann/json.
#include "trainer_harness/jobs/progress_line.h"

#include <nlohmann/json.hpp>

namespace tidemark::harness {

std::optional<ProgressLine> parse_progress_line(std::string_view line) {
  using nlohmann::json;
  const json object = json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    return std::nullopt;
  }
  const auto field = [&](const char* name) {
    const auto found = object.find(name);
    return found != object.end() ? *found : json();
  };
  ProgressLine parsed;
  if (const json step = field("step"); step.is_number_integer()) {
    parsed.step = step.get<std::int64_t>();
  }
  if (const json loss = field("loss"); loss.is_number()) {
    parsed.loss = loss.get<double>();
  }
  if (const json phase = field("phase"); phase.is_string()) {
    parsed.phase = phase.get<std::string>();
  }
  if (const json stopped = field("stopped"); stopped.is_boolean()) {
    parsed.stopped = stopped.get<bool>();
  }
  return parsed;
}

}  // namespace tidemark::harness
