// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/owner_records.h"
#include "common/process_key.h"
#include "common/site_records.h"
#include "profiler/reader/collector.h"
#include "profiler/reader/memory_account.h"
#include "profiler/reader/trace_directory.h"
#include "profiler/reader/trace_file.h"
#include "profiler/reader/trace_world.h"

namespace tidemark::reader {

// Which call stacks have allocated given blocks of processes that somebody profiles at the same
// time. Their trace files are read, and nothing else happens to them. To be used by one thread, but
// for take_facts().
class BlockSites {
 public:
  static constexpr std::size_t kMostSites = 4;  // of one group of blocks
  // Numbers of sites, frames and modules come after this one, so that a Collector may follow the
  // same run: its own are lower.
  static constexpr std::uint32_t kNumberBefore = 1U << 30U;

  explicit BlockSites(std::unique_ptr<TraceWorld> world = make_trace_world(),
                      std::vector<std::string> bases = trace_bases());

  // Whether the tracer is at work in a process, and its blocks can be asked for.
  bool is_traced(const ProcessKey& key) { return open(key).has_value(); }
  // For each group of addresses at which blocks begin: which stacks have allocated those that live
  // and are recorded, and how many bytes; in sampled mode those that they stand for. The most bytes
  // first.
  std::vector<std::vector<OwnerSite>> find(const ProcessKey& key,
                                           std::span<const std::vector<std::uint64_t>> groups);
  // What the tracer knows of the anonymous memory of a process; nullopt: it is not at work there
  // from the beginning on. `areas`: all that the process has mapped. `t_s` is left to the caller.
  std::optional<MemoryAccount> account(const ProcessKey& key, std::span<const MemoryArea> areas);
  // From any thread: the stacks that find() has named since the last call.
  AllocationFacts take_facts();

 private:
  // Of a process image: a site is no more than its place in one file.
  struct StackKey {
    ProcessKey key;
    std::uint64_t created_ns = 0;
    std::uint64_t stack = 0;
    AllocationKind kind = AllocationKind::kHeap;

    // clang-tidy 14 takes the 0 inside the generated code for a null pointer.
    auto operator<=>(const StackKey&) const = default;  // NOLINT(modernize-use-nullptr)
  };

  std::optional<TraceFile> open(const ProcessKey& key);
  std::optional<std::uint32_t> number_of(const ProcessKey& key, const TraceFile& file,
                                         const SiteCounts& site, AllocationFacts& facts);

  const std::unique_ptr<TraceWorld> world_;
  const std::vector<std::string> bases_;
  FrameNumbers frames_{kNumberBefore};
  std::map<StackKey, std::uint32_t> numbers_;

  std::mutex mutex_;  // guards what follows
  AllocationFacts facts_;
};

}  // namespace tidemark::reader
