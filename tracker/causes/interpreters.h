// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

#include "common/owner_records.h"

namespace tidemark::tracker {

// What looks at its heap have found out about the interpreter of a process.
struct InterpreterState {
  InterpreterFacts facts;
  // What has come since the first look of objects that only refer to each other, and that no
  // collection has freed yet.
  double garbage_bytes = 0.0;
};

// The interpreters of a run. Memory is bounded.
class Interpreters {
 public:
  void add(const HeapFacts& heap);
  // nullptr: nobody looked, or there is no Python.
  const InterpreterState* of(const ProcessKey& key) const;

 private:
  struct Known {
    InterpreterState state;
    std::set<std::uint32_t> garbage;  // numbers of owners
  };
  std::unordered_map<ProcessKey, Known> known_;
};

// A release of Python: "3.14.2", "3.13.0rc1".
struct PythonRelease {
  int major = 0;
  int minor = 0;
  int patch = 0;
};
std::optional<PythonRelease> parse_python_release(std::string_view text);

// Releases whose collector lets garbage pile up: 3.14.0 to 3.14.4 with a global lock.
bool collects_late(const InterpreterFacts& facts);

}  // namespace tidemark::tracker
