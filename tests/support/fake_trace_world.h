// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "profiler/reader/trace_world.h"

namespace tidemark::tests {

// Names a frame after its address, and kills a process when the test says so.
class FakeTraceWorld final : public reader::TraceWorld {
 public:
  std::set<pid_t> dead;
  std::set<pid_t> strangers;          // in no tree that is asked for
  std::set<std::uint32_t> unseen;     // pids that cannot be found
  std::optional<bool> mapped = true;  // any file by any process
  std::optional<reader::Residency> resident;
  bool has_our_pages = false;  // its memory is that of the test
  std::optional<std::vector<reader::MemoryArea>> mappings;
  std::vector<std::string> problems;
  std::vector<std::string> named;  // pids whose stacks were asked for

  std::optional<ProcessKey> find(const reader::TraceIdentity& identity) override {
    if (unseen.contains(identity.pid)) {
      return std::nullopt;
    }
    return ProcessKey{static_cast<pid_t>(identity.pid), identity.start_ticks};
  }
  bool is_alive(const ProcessKey& key) override { return !dead.contains(key.pid); }
  bool is_in_tree(const ProcessKey& key, pid_t) override { return !strangers.contains(key.pid); }
  std::optional<bool> is_mapped(const ProcessKey&, const std::string&) override { return mapped; }
  std::vector<SourceFrame> name(const ProcessKey& key, const std::vector<reader::StackFrame>& stack,
                                const std::vector<reader::TraceModule>&) override {
    named.push_back(std::to_string(key.pid));
    std::vector<SourceFrame> frames;
    for (const reader::StackFrame& frame : stack) {
      SourceFrame& source = frames.emplace_back();
      source.function = fmt::format("f{:x}", frame.value);
      source.module_path = "/lib/a.so";
      source.offset = frame.value;
    }
    return frames;
  }
  std::optional<reader::Residency> residency(const ProcessKey&,
                                             std::span<const reader::MemoryRange> ranges) override {
    return has_our_pages ? reader::residency_of(::getpid(), ranges) : resident;
  }
  std::optional<std::vector<reader::MemoryArea>> areas(const ProcessKey&) override {
    return mappings;
  }
  std::vector<std::string> take_problems() override { return std::exchange(problems, {}); }
  void wait_until(std::int64_t) override {}
};

}  // namespace tidemark::tests
