// SPDX-License-Identifier: Apache-2.0
#include "tracker/causes/interpreters.h"

#include <charconv>
#include <system_error>

namespace tidemark::tracker {

void Interpreters::add(const HeapFacts& heap) {
  constexpr std::size_t kMostProcesses = 256;
  constexpr std::size_t kMostOwners = 256;
  const auto known_of = [&](const ProcessKey& key) -> Known* {
    const auto it = known_.find(key);
    if (it != known_.end()) {
      return &it->second;
    }
    return known_.size() < kMostProcesses ? &known_[key] : nullptr;
  };
  for (const OwnerRecord& owner : heap.owners) {
    Known* const known = owner.kind == OwnerKind::kGarbage ? known_of(owner.key) : nullptr;
    if (known != nullptr && known->garbage.size() < kMostOwners) {
      known->garbage.insert(owner.owner);
    }
  }
  for (const HeapFacts::OfProcess& of : heap.looks) {
    Known* const known = known_of(of.look.key);
    if (known == nullptr || of.look.interpreter.python.empty()) {
      continue;
    }
    known->state.facts = of.look.interpreter;
    known->state.garbage_bytes = 0.0;
    for (const OwnerSample& sample : of.owners) {
      if (known->garbage.contains(sample.owner)) {
        known->state.garbage_bytes += static_cast<double>(sample.grown_bytes);
      }
    }
  }
}

const InterpreterState* Interpreters::of(const ProcessKey& key) const {
  const auto it = known_.find(key);
  return it == known_.end() || it->second.state.facts.python.empty() ? nullptr : &it->second.state;
}

std::optional<PythonRelease> parse_python_release(std::string_view text) {
  PythonRelease release;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int* const part : {&release.major, &release.minor, &release.patch}) {
    if (part != &release.major && (at == end || *at++ != '.')) {
      return std::nullopt;
    }
    const auto parsed = std::from_chars(at, end, *part);
    if (parsed.ec != std::errc() || *part < 0) {
      return std::nullopt;
    }
    at = parsed.ptr;
  }
  return release;
}

bool collects_late(const InterpreterFacts& facts) {
  const auto release = parse_python_release(facts.python);
  return release && release->major == 3 && release->minor == 14 && release->patch <= 4 &&
         !facts.is_free_threaded;
}

}  // namespace tidemark::tracker
