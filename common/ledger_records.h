// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/process_key.h"

// Where the memory of a process is: a ledger whose rows add up to what the kernel says that it has.
// Names are raw bytes from the memory map of a stranger. docs/explain.md explains each row.
namespace tidemark {

// What the memory of a row is. The names are written to run files and JSON: they never change their
// meaning, and new ones are added at the end.
enum class LedgerKind {
  kMallocInUse,   // heaps of glibc's malloc: what the program has allocated there
  kMallocFree,    // the same heaps: freed, and kept for later
  kMalloc,        // the same heaps where it is not known what of them is free
  kPythonInUse,   // arenas of Python's allocator of small objects: blocks in use
  kPythonFree,    // the same arenas: free blocks and free pools
  kAnonymous,     // memory without a file: large blocks, other allocators, what none of these is
  kThreadStacks,  // of the main thread, too
  kProgram,       // the program, a library, and their data
  kFile,          // another file that is mapped
  kSharedMemory,  // a segment of /dev/shm, of System V, a memfd, shared anonymous memory
  kPinned,        // host memory that a driver of a GPU maps
  kTracer,        // the trace file of Tidemark's own allocation tracer
  kOther,         // the kernel's own mappings
};
inline constexpr int kLedgerKindCount = 13;

// Memory of one sort. Sums over the rows of a ledger are what the kernel counts for the process.
struct LedgerRow {
  LedgerKind kind = LedgerKind::kOther;
  std::string name;         // of a file or segment; empty: of the kind as a whole, or of the rest
  std::uint64_t count = 0;  // mappings; of malloc heaps, of Python arenas, of stacks threads
  std::uint64_t rss_bytes = 0;
  std::uint64_t pss_bytes = 0;            // the same, shared pages divided among their processes
  std::uint64_t footprint_bytes = 0;      // what is no file, and what of it is in swap
  std::uint64_t pss_footprint_bytes = 0;  // the same, shared pages divided
  std::uint64_t swap_bytes = 0;           // of it in swap
  std::uint64_t huge_pages_bytes = 0;     // of rss_bytes in transparent huge pages
  std::optional<std::int64_t> maker_pid;  // of a segment, by its name; in the maker's namespace
};

// The name of rows of shared memory that has none.
inline constexpr std::string_view kSharedAnonymousName = "/dev/zero";

// One pass over the memory map of a process.
struct MemoryLedger {
  ProcessKey key;
  double t_s = 0.0;
  double took_s = 0.0;
  // What the kernel counted right before or right after the pass, whichever is nearer to the rows,
  // which may miss it by what changed meanwhile.
  std::uint64_t rss_bytes = 0;
  std::uint64_t footprint_bytes = 0;
  std::uint64_t swap_bytes = 0;
  // How far `rss_bytes` moved while the map was read.
  std::int64_t moved_bytes = 0;
  std::optional<std::uint64_t> threads;
  std::optional<std::uint64_t> malloc_heaps;  // of threads: 64 MiB each; nullopt: could not be read
  std::uint64_t hugetlb_bytes = 0;            // reserved huge pages: in no sum of the kernel
  // Where the allocation tracer is at work: what it knows of the anonymous rows.
  std::optional<std::uint64_t> traced_live_bytes;
  std::optional<std::uint64_t> traced_slack_bytes;     // beside the live blocks: freed, or lost
  std::optional<std::uint64_t> traced_unhooked_bytes;  // never came through an allocator
  bool is_partial = false;  // what is free in the heap was not all looked at: there is more
  std::string problem;      // what could not be told apart, and why; empty: no problem
  std::vector<LedgerRow> rows;

  LedgerRow sum() const;
  // What the rows do not explain; negative: they have more.
  std::int64_t unexplained_rss_bytes() const;
  std::int64_t unexplained_footprint_bytes() const;
};

// "malloc_in_use", "python_free", ...
std::string_view ledger_kind_name(LedgerKind kind);
std::optional<LedgerKind> ledger_kind_from_name(std::string_view name);

// Adds what a row has to another one; kind and name stay.
void add_to(LedgerRow& sum, const LedgerRow& row);

}  // namespace tidemark
