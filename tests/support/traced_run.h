// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiler/reader/trace_values.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::tests {

struct TraceAsk {
  wire::Mode mode = wire::Mode::kExact;
  std::uint64_t sample_every_bytes = 512U << 10U;
  std::uint64_t most_file_bytes = 0;
  bool follow = true;
  bool libunwind = false;
  bool names = true;                      // false: `functions` of the sites are left empty
  std::string directory;                  // empty: a private one, gone after the run
  std::vector<std::string> also_preload;  // after the tracer
  std::vector<std::string> environment;   // "NAME=value"
  std::vector<std::string> before;        // of the command: a shell that sets limits, say
};

// What the allocations of one stack came to, or the sum of several of them.
struct TracedSite {
  AllocationKind kind = AllocationKind::kHeap;
  // Of the frames in programs and libraries of this build tree, innermost first, without their
  // parameters.
  std::vector<std::string> functions;
  double alloc_bytes = 0.0;
  double alloc_blocks = 0.0;
  double live_bytes = 0.0;
  double live_blocks = 0.0;
  double temporary_blocks = 0.0;
  std::size_t frames = 0;  // in all
};

// One file of a run.
struct TracedFile {
  reader::TraceSnapshot snapshot;
  std::vector<TracedSite> sites;
  double listed_bytes = 0.0;  // of the blocks and mappings in its tables
  double listed_blocks = 0.0;

  // The sum of the sites that the function is on the stack of.
  TracedSite sum_of(const std::string& function, AllocationKind kind) const;
  // The site with most live bytes.
  const TracedSite& top() const;
};

struct TracedRun {
  int status = -1;  // in the words of a shell
  std::string output;
  std::string errors;
  std::vector<TracedFile> files;
  std::size_t unreadable = 0;  // files that could not be read, unfinished ones among them

  // The first one that no exec has ended, or the first.
  const TracedFile* of_pid(std::uint32_t pid) const;
};

std::string tracer_path();
std::string operators_path();
// The command of `ask.before`, then env(1) with the variables of the tracer, then `argv`.
std::vector<std::string> traced_command(const std::vector<std::string>& argv, const TraceAsk& ask);
// Runs it to its end. What the tracer left is read then.
TracedRun run_traced(const std::vector<std::string>& argv, const TraceAsk& ask = {});
// The trace files of a folder.
void read_traces(const std::string& directory, bool names, TracedRun& run);

}  // namespace tidemark::tests
