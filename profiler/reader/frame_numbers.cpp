// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/frame_numbers.h"

#include <string_view>

namespace tidemark::reader {
namespace {

// A key without ambiguity: each part with its length in front.
void add_part(std::string& key, std::string_view part) {
  key += std::to_string(part.size());
  key += ':';
  key += part;
}

}  // namespace

std::vector<std::uint32_t> FrameNumbers::number(const std::vector<SourceFrame>& stack,
                                                AllocationFacts& facts) {
  std::vector<std::uint32_t> numbers;
  numbers.reserve(stack.size());
  for (const SourceFrame& frame : stack) {
    numbers.push_back(number_of_frame(frame, facts));
  }
  return numbers;
}

std::uint32_t FrameNumbers::number_of_module(const SourceFrame& frame, AllocationFacts& facts) {
  std::string key;
  add_part(key, frame.module);
  add_part(key, frame.build_id);
  const auto next = static_cast<std::uint32_t>(modules_.size() + 1);
  const auto [it, is_new] = modules_.try_emplace(std::move(key), next);
  if (is_new) {
    facts.modules.push_back({next, frame.module, frame.build_id});
  }
  return it->second;
}

std::uint32_t FrameNumbers::number_of_frame(const SourceFrame& frame, AllocationFacts& facts) {
  FrameRecord record;
  record.kind = frame.kind == FrameKind::kPython ? tidemark::FrameKind::kPython
                                                 : tidemark::FrameKind::kNative;
  if (!frame.module.empty()) {
    record.module = number_of_module(frame, facts);
  }
  record.offset = frame.address;
  record.function = frame.function;
  record.file = frame.file;
  record.line = frame.line;
  record.is_inlined = frame.inlined;
  std::string key;
  add_part(key, std::to_string(record.module.value_or(0)));
  add_part(key, std::to_string(record.offset));
  add_part(key, frame.function);
  add_part(key, frame.file);
  add_part(key, std::to_string(record.line.value_or(0)));
  key += frame.inlined ? 'i' : 'f';
  key += frame.kind == FrameKind::kPython ? 'p' : 'n';
  const auto next = static_cast<std::uint32_t>(frames_.size() + 1);
  const auto [it, is_new] = frames_.try_emplace(std::move(key), next);
  if (is_new) {
    record.frame = next;
    facts.frames.push_back(std::move(record));
  }
  return it->second;
}

}  // namespace tidemark::reader
