// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/site_records.h"
#include "common/source_frame.h"

namespace tidemark::reader {

// Numbers the modules and frames of a run: equal ones of all processes have one number, so that a
// stack is told by its numbers alone. Not thread-safe.
class FrameNumbers {
 public:
  // The numbers of a stack; modules and frames that are new are added to `facts`.
  std::vector<std::uint32_t> number(const std::vector<SourceFrame>& stack, AllocationFacts& facts);

 private:
  std::uint32_t number_of_module(const SourceFrame& frame, AllocationFacts& facts);
  std::uint32_t number_of_frame(const SourceFrame& frame, AllocationFacts& facts);

  std::unordered_map<std::string, std::uint32_t> modules_;
  std::unordered_map<std::string, std::uint32_t> frames_;
};

}  // namespace tidemark::reader
