// SPDX-License-Identifier: Apache-2.0
// What a victim of tests/programs/traced says of itself.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/check.h"
#include "common/site_records.h"
#include "common/text.h"

namespace tidemark::tests {

struct HeldTruth {
  std::string function;
  AllocationKind kind = AllocationKind::kHeap;
  double live_bytes = 0.0;
  double live_blocks = 0.0;
};

struct ProcessTruth {
  std::uint32_t pid = 0;
  bool uniform = false;
  std::vector<HeldTruth> held;
};

inline AllocationKind kind_named(const std::string& name) {
  static const std::map<std::string, AllocationKind> kKinds = {
      {"heap", AllocationKind::kHeap},         {"map", AllocationKind::kAnonymousMap},
      {"shared", AllocationKind::kSharedMap},  {"device", AllocationKind::kCudaDevice},
      {"pinned", AllocationKind::kCudaPinned}, {"registered", AllocationKind::kCudaRegistered}};
  return kKinds.at(name);
}

// One for each line, that is for each process that came to its end.
inline std::vector<ProcessTruth> parse_truth(const std::string& output) {
  std::vector<ProcessTruth> truths;
  for (const auto line : split(output, '\n')) {
    if (line.empty()) {
      continue;
    }
    const auto json = nlohmann::json::parse(line, nullptr, false);
    TIDEMARK_CHECK(json.is_object(), "the victim printed something else");
    ProcessTruth truth{json["pid"], json["uniform"], {}};
    for (const auto& held : json["held"]) {
      truth.held.push_back(
          {held["function"], kind_named(held["kind"]), held["live_bytes"], held["live_blocks"]});
    }
    truths.push_back(std::move(truth));
  }
  return truths;
}

}  // namespace tidemark::tests
