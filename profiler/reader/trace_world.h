// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/process_key.h"
#include "common/site_records.h"
#include "profiler/reader/memory_account.h"
#include "profiler/reader/residency.h"
#include "profiler/reader/trace_values.h"

namespace tidemark::reader {

// What the collector has to know beside the trace files: the machine in the tool, made-up answers
// in tests. Not thread-safe but for wait_until().
class TraceWorld {
 public:
  virtual ~TraceWorld() = default;
  // The process as we see it: in another pid namespace its own pid means nothing to us. nullopt: it
  // is gone, or is not visible from here.
  virtual std::optional<ProcessKey> find(const TraceIdentity& identity) = 0;
  virtual bool is_alive(const ProcessKey& key) = 0;
  // Whether it is `root` or one of its descendants.
  virtual bool is_in_tree(const ProcessKey& key, pid_t root) = 0;
  // Whether the process has a file of this name mapped; nullopt: it cannot be asked.
  virtual std::optional<bool> is_mapped(const ProcessKey& key, const std::string& file_name) = 0;
  // Names a stack, innermost frame first; slow.
  virtual std::vector<SourceFrame> name(const ProcessKey& key, const std::vector<StackFrame>& stack,
                                        const std::vector<TraceModule>& modules) = 0;
  virtual std::optional<Residency> residency(const ProcessKey& key,
                                             std::span<const MemoryRange> ranges) = 0;
  // The mappings of a process; nullopt: they cannot be read.
  virtual std::optional<std::vector<MemoryArea>> areas(const ProcessKey& key) = 0;
  // What could not be named or asked since the last call, as sentences; raw bytes.
  virtual std::vector<std::string> take_problems() = 0;
  // From any thread: name() waits for nobody beyond this moment of CLOCK_MONOTONIC.
  virtual void wait_until(std::int64_t until_ns) = 0;
};

// The machine that we run on.
std::unique_ptr<TraceWorld> make_trace_world(std::string proc_root = "/proc");

}  // namespace tidemark::reader
