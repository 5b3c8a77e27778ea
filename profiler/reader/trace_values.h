// SPDX-License-Identifier: Apache-2.0
// What a trace file says, as plain values that outlive it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/site_records.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::reader {

// The process image that a trace file belongs to, in the process's own words.
struct TraceIdentity {
  std::uint32_t pid = 0;         // in its own pid namespace
  std::uint32_t parent_pid = 0;  // likewise
  std::uint64_t start_ticks = 0;
  std::uint64_t pid_namespace = 0;  // inode
  std::uint64_t created_ns = 0;     // CLOCK_MONOTONIC: second 0 of the epochs
  bool forked = false;              // the blocks that it inherited are not listed

  bool operator==(const TraceIdentity&) const = default;
};

// What the tracer could not record; see wire::Losses for the meaning of each.
struct TraceLosses {
  std::uint64_t live_full = 0;
  std::uint64_t sites_full = 0;
  std::uint64_t ranges_full = 0;
  std::uint64_t unknown_frees = 0;
  std::uint64_t truncated_stacks = 0;
  std::uint64_t empty_stacks = 0;
  std::uint64_t extend_failures = 0;
  std::uint64_t reentered = 0;
  std::uint64_t missed_frees = 0;

  bool operator==(const TraceLosses&) const = default;
};

// What the reader itself had to leave out of one snapshot or scan.
struct ReadLosses {
  std::uint64_t damaged_items = 0;  // sites or blocks whose fields contradict the format
  std::uint64_t unread_items = 0;   // beyond the limits of the reader, or cut off with the file
  std::uint64_t torn_slots = 0;     // live blocks that changed while they were read

  bool operator==(const ReadLosses&) const = default;
};

// The counters of one call stack. In sampled mode bytes and blocks are unbiased estimates. Several
// sites may have the same stack and kind: add them up.
struct SiteCounts {
  std::uint32_t index = 0;
  std::uint32_t ready = 0;  // changes when the site becomes that of another stack
  std::uint32_t node = 0;   // for TraceFile::stack()
  AllocationKind kind = AllocationKind::kHeap;
  bool truncated = false;   // the stack was deeper than the tracer walks
  std::uint64_t stack = 0;  // the same for the same frames, whatever the node
  std::uint64_t alloc_bytes = 0;
  std::uint64_t free_bytes = 0;
  std::uint64_t peak_live_bytes = 0;
  double alloc_blocks = 0.0;
  double free_blocks = 0.0;
  double temporary_blocks = 0.0;  // freed before the thread's next allocation

  // Alloc and free are not counted at one instant: what would be negative is 0.
  std::uint64_t live_bytes() const {
    return alloc_bytes > free_bytes ? alloc_bytes - free_bytes : 0;
  }
  double live_blocks() const {
    return alloc_blocks > free_blocks ? alloc_blocks - free_blocks : 0.0;
  }
};

// An object file that was mapped into the process.
struct TraceModule {
  std::uint64_t begin = 0;  // addresses in the process
  std::uint64_t end = 0;
  std::uint64_t load_bias = 0;  // address in the process minus address in the file
  std::string path;             // raw bytes
  std::string build_id;         // lower-case hexadecimal; empty: the file has none
};

// One frame of a stack.
struct StackFrame {
  FrameKind kind = FrameKind::kNative;
  std::uint64_t value = 0;              // native: program counter (a return address)
  std::optional<std::uint32_t> module;  // index into TraceFile::modules(); none: JIT code, vdso
  // Of Python; what is not known is empty. Raw bytes.
  std::string function = {};
  std::string file = {};
  std::optional<std::uint32_t> line = {};
};

// The address to ask a Symbolizer for: that of the call, in the numbering of the module's file. A
// return address may already belong to the next line or the next function, hence one less.
inline std::uint64_t call_address(const StackFrame& frame, const TraceModule& module) {
  return frame.value - module.load_bias - 1;
}

// One snapshot of the header and the site table.
struct TraceSnapshot {
  TraceIdentity identity;
  wire::Stage stage = wire::Stage::kSettingUp;
  TraceMode mode = TraceMode::kDormant;
  std::string reason;  // why it broke, or what it does not record; raw bytes
  wire::PythonFramesState python = wire::PythonFramesState::kNone;
  std::string python_problem;  // why stacks have no frames of Python; raw bytes
  std::uint64_t sample_every_bytes = 0;
  std::uint32_t epoch = 0;          // what blocks that are allocated now are marked with
  std::uint64_t file_bytes = 0;     // that are allocated, as the file system says
  std::uint64_t private_bytes = 0;  // memory that the tracer uses besides the file
  int extend_errno = 0;             // why the file last could not grow; 0: never happened
  TraceLosses losses;
  ReadLosses read_losses;
  std::size_t modules = 0;  // how many are known by now
  std::size_t nodes = 0;
  std::uint64_t ready_sites = 0;  // all that there are or were, listed or not
  double freed_blocks = 0.0;      // of all of them
  // By index; those still being set up are left out, and those that are not asked for.
  std::vector<SiteCounts> sites;
};

inline constexpr std::size_t kMostAgeBuckets = 32;

// A stretch of epochs of allocation, both ends included: steps, or seconds since
// TraceIdentity::created_ns.
struct AgeBucket {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  bool is_step = false;

  bool operator==(const AgeBucket&) const = default;
};

// Stands for all sites that LiveScanOptions does not list.
inline constexpr std::uint32_t kOtherSites = 0xffff'ffff;

// The blocks of one site that live now, estimated from those that were recorded.
struct LiveSite {
  std::uint32_t site = 0;
  std::uint64_t recorded_blocks = 0;  // how many records the estimates rest on
  double blocks = 0.0;
  double bytes = 0.0;
  // Of `bytes`; its root is the standard error. 0 in exact mode.
  double bytes_variance = 0.0;
  std::vector<double> bytes_by_age;  // parallel to LiveScan::ages; empty: not asked for
};

// A live block or mapping that was recorded; stands for `weight` blocks of its size.
struct LiveBlock {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  double weight = 1.0;
  std::uint32_t site = 0;
  std::uint32_t epoch = 0;  // with wire::kEpochIsStep
};

// One scan of all live blocks and mappings.
struct LiveScan {
  std::vector<AgeBucket> ages;    // in order of time: seconds first, then steps; over the whole run
  std::vector<LiveSite> sites;    // by site; only those with a live block. kOtherSites at the end
  std::vector<LiveBlock> blocks;  // those that LiveScanOptions asks for, in no order
  std::uint64_t blocks_not_kept = 0;
  ReadLosses losses;
};

}  // namespace tidemark::reader
