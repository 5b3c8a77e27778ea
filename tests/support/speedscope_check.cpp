// SPDX-License-Identifier: Apache-2.0
#include "tests/support/speedscope_check.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace tidemark::tests {
namespace {

using nlohmann::json;

bool is_text(const json& object, const char* name) {
  return object.contains(name) && object[name].is_string();
}
bool is_number(const json& object, const char* name) {
  return object.contains(name) && object[name].is_number();
}

std::string problem_of_frame(const json& frame) {
  if (!frame.is_object() || !is_text(frame, "name")) {
    return "a frame has no name";
  }
  if (frame.contains("file") && !frame["file"].is_string()) {
    return "the file of a frame is no text";
  }
  for (const char* const place : {"line", "col"}) {
    if (frame.contains(place) && !frame[place].is_number()) {
      return std::string(place) + " of a frame is no number";
    }
  }
  return "";
}

std::string problem_of_sample(const json& sample, std::size_t frames) {
  if (!sample.is_array()) {
    return "a sample is no array";
  }
  for (const json& frame : sample) {
    if (!frame.is_number_unsigned() || frame.get<std::size_t>() >= frames) {
      return "a sample has a frame that is not there";
    }
  }
  return "";
}

std::string problem_of_profile(const json& profile, std::size_t frames) {
  constexpr std::array kUnits{"none",         "nanoseconds", "microseconds",
                              "milliseconds", "seconds",     "bytes"};
  if (!profile.is_object() || !is_text(profile, "type") || profile["type"] != "sampled" ||
      !is_text(profile, "name") || !is_text(profile, "unit")) {
    return "a profile has no type, name or unit";
  }
  if (std::find(kUnits.begin(), kUnits.end(), profile["unit"]) == kUnits.end()) {
    return "the unit of a profile is none of the format's";
  }
  if (!is_number(profile, "startValue") || !is_number(profile, "endValue") ||
      profile["endValue"] < profile["startValue"]) {
    return "a profile does not begin and end";
  }
  const json samples = profile.value("samples", json());
  const json weights = profile.value("weights", json());
  if (!samples.is_array() || !weights.is_array() || samples.size() != weights.size()) {
    return "there is not one weight for each sample";
  }
  for (const json& weight : weights) {
    if (!weight.is_number()) {
      return "a weight is no number";
    }
  }
  for (const json& sample : samples) {
    if (std::string problem = problem_of_sample(sample, frames); !problem.empty()) {
      return problem;
    }
  }
  return "";
}

}  // namespace

std::string speedscope_problem(std::string_view text) {
  const json file = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!file.is_object()) {
    return "it is no JSON object";
  }
  if (file.value("$schema", "") != "https://www.speedscope.app/file-format-schema.json") {
    return "$schema is not that of the format";
  }
  const json frames = file.value("/shared/frames"_json_pointer, json());
  if (!frames.is_array()) {
    return "there are no shared frames";
  }
  for (const json& frame : frames) {
    if (std::string problem = problem_of_frame(frame); !problem.empty()) {
      return problem;
    }
  }
  const json profiles = file.value("profiles", json());
  if (!profiles.is_array() || profiles.empty()) {
    return "there are no profiles";
  }
  for (const json& profile : profiles) {
    if (std::string problem = problem_of_profile(profile, frames.size()); !problem.empty()) {
      return problem;
    }
  }
  const json active = file.value("activeProfileIndex", json(0));
  return active.is_number_unsigned() && active.get<std::size_t>() < profiles.size()
             ? ""
             : "the active profile is not there";
}

}  // namespace tidemark::tests
