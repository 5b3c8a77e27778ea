// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/process_key.h"

// What the allocation tracer adds to a run: call stacks, and how much each of them holds. Numbers
// of modules, frames and sites are those of the run, not of a process; they begin at 1.
namespace tidemark {

// What was asked for. The names are written to run files and JSON: they never change.
enum class AllocationKind {
  kHeap,          // malloc and its family
  kAnonymousMap,  // mmap without a file
  kSharedMap,     // mmap with MAP_SHARED
  kAllocatorMap,  // made by the allocator: holds heap blocks, which are counted already
  kCudaDevice,
  kCudaPinned,
  kCudaRegistered,  // pinned, but a block that is counted already
};

// kThreadStart: no frame. Those further out are of the thread that has started this one.
enum class FrameKind { kNative, kPython, kThreadStart };

// Dormant: loaded, but records nothing yet.
enum class TraceMode { kDormant, kSampled, kExact };

struct ModuleRecord {
  std::uint32_t module = 0;
  std::string path;      // raw bytes
  std::string build_id;  // hexadecimal; empty: it has none
};

// One line of a call stack. What the symbols do not say is empty, or nullopt.
struct FrameRecord {
  std::uint32_t frame = 0;
  FrameKind kind = FrameKind::kNative;
  std::optional<std::uint32_t> module;
  std::uint64_t offset = 0;  // in the module, as its symbol table counts; without one the address
  std::string function;
  std::string file;
  std::optional<std::uint32_t> line;
  bool is_inlined = false;  // into the next frame of the stack
};

// Names come from files of strangers, and every stack may have the same long one: what is longer
// than this is cut off.
inline constexpr std::size_t kMostNameBytes = 4096;
void bound_names(FrameRecord& frame);
void bound_names(ModuleRecord& module);

// A frame that has no numbers yet, or needs none. All text is raw bytes from files of strangers.
struct SourceFrame : FrameRecord {
  std::string module_path;  // empty: none
  std::string build_id;     // of the module
};

// A call stack of one process that allocates.
struct SiteRecord {
  std::uint32_t site = 0;
  ProcessKey key;
  AllocationKind kind = AllocationKind::kHeap;
  bool is_truncated = false;  // the stack was deeper than the tracer walks
  // Innermost first. Empty until it is named: the same site then comes again, with frames.
  std::vector<std::uint32_t> frames;
};

// What a site holds. Sampled processes give estimates.
struct SiteSample {
  std::uint32_t site = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t live_blocks = 0;
  std::uint64_t alloc_bytes = 0;  // since the beginning
  std::uint64_t alloc_blocks = 0;
  std::uint64_t peak_bytes = 0;
  std::uint64_t temporary_blocks = 0;           // freed before the thread's next allocation
  std::optional<std::uint64_t> resident_bytes;  // of the live ones; nullopt: not measured
};

// When the live bytes of a site were allocated; replaces what was known of the site before.
struct SiteAges {
  // An interval in which some were allocated.
  struct Interval {
    bool in_steps = false;
    double from = 0.0;  // seconds since the start of the run, or a step
    std::uint64_t bytes = 0;
  };
  std::uint32_t site = 0;
  std::vector<Interval> intervals;  // intervals of one length, in the order of time, without gaps
};

// A traced process at one time: all its sites together, and how reliable they are. Counters run
// from its start. Sites without a sample of their own at this time have not changed.
struct TraceSample {
  ProcessKey key;
  double t_s = 0.0;  // of the reading, shortly before the tick that brings it
  TraceMode mode = TraceMode::kSampled;
  std::optional<std::uint64_t> sample_every_bytes;  // nullopt: exact
  std::uint64_t sites = 0;
  std::uint64_t live_bytes = 0;  // of all sites, what is counted twice left out
  std::uint64_t live_blocks = 0;
  std::uint64_t rest_bytes = 0;  // of those sites that have no samples of their own
  std::uint64_t rest_blocks = 0;
  std::uint64_t freed_blocks = 0;
  std::uint64_t unknown_frees = 0;    // of blocks that were not known, or that were not seen
  std::uint64_t dropped_records = 0;  // blocks, stacks and mappings that found no place
  std::uint64_t truncated_stacks = 0;
  std::uint64_t empty_stacks = 0;
  std::uint64_t file_bytes = 0;  // the tracer's own memory: its file, and beside it
  std::uint64_t private_bytes = 0;
  bool has_ended = false;  // nothing follows
  std::string problem;     // why it lost records, or what it does not record; empty: nothing
};

// Where the anonymous memory of a traced process is, from the kernel's list of its mappings;
// read every few seconds. In sampled mode the first two are estimates.
struct MemoryAccount {
  ProcessKey key;
  double t_s = 0.0;
  std::uint64_t blocks_bytes = 0;    // what is resident of live blocks and of recorded mappings
  std::uint64_t slack_bytes = 0;     // what else is resident where the allocator has its blocks
  std::uint64_t unhooked_bytes = 0;  // in mappings that no hook saw; data and stacks are among them
  std::uint64_t tracer_bytes = 0;    // of the tracer's file
};

// Why the tracer is not in a process of the job. The names are written to run files and JSON: they
// never change, and new ones are added at the end.
enum class UntracedReason {
  kUnknown,
  kNotFollowed,        // the user asked to leave alone what the command starts
  kStatic,             // there is no loader that would load the tracer
  kOtherLibc,          // not glibc
  kOtherArchitecture,  // not a 64-bit program of this machine
  kPrivileges,         // set-user-ID, set-group-ID or capabilities: the loader preloads nothing
  kOtherUser,          // who may not write where the tracer puts its file
  kOutOfReach,         // the tracer is not below its root folder
  kNoVariables,        // started without the variables that ask for the tracer
};

struct UntracedProcess {
  ProcessKey key;
  UntracedReason reason = UntracedReason::kUnknown;
};

// A named segment in /dev/shm that is new, or has grown, since the run began.
struct GrowingSegment {
  std::string path;  // below /dev/shm, raw bytes
  std::uint64_t bytes = 0;
  std::uint64_t grown_bytes = 0;
  std::optional<bool> held;    // by some process
  std::optional<pid_t> maker;  // when its name says so
  bool is_of_job = false;      // whatever its name says; not in the run file
};

// All of them, at the time when they were largest: a job that ends well may have removed them.
struct ShmGrowthReport {
  std::uint64_t grown_bytes = 0;
  std::uint64_t segments = 0;
  std::vector<GrowingSegment> largest;
};

// What the tracer adds to one tick. Modules, frames and sites come before their first use.
struct AllocationFacts {
  std::vector<ModuleRecord> modules;
  std::vector<FrameRecord> frames;
  std::vector<SiteRecord> sites;
  std::vector<SiteSample> samples;  // only of sites that changed
  std::vector<SiteAges> ages;
  std::vector<TraceSample> traces;
  std::vector<MemoryAccount> accounts;
  std::vector<UntracedProcess> untraced;  // once for each program that a process runs
  std::optional<ShmGrowthReport> shm;     // replaces what was known before

  bool empty() const {
    return modules.empty() && frames.empty() && sites.empty() && samples.empty() && ages.empty() &&
           traces.empty() && accounts.empty() && untraced.empty() && !shm;
  }
};

// "heap", "anonymous_map", ...; "native", "python"; "dormant", "sampled", "exact".
std::string_view allocation_kind_name(AllocationKind kind);
std::optional<AllocationKind> allocation_kind_from_name(std::string_view name);
std::string_view frame_kind_name(FrameKind kind);
std::optional<FrameKind> frame_kind_from_name(std::string_view name);
std::string_view trace_mode_name(TraceMode mode);
std::optional<TraceMode> trace_mode_from_name(std::string_view name);
// "unknown", "static", "other_user", ...
std::string_view untraced_reason_name(UntracedReason reason);
std::optional<UntracedReason> untraced_reason_from_name(std::string_view name);

// Whether the bytes of a site of this kind are in another site's sum already.
constexpr bool is_counted_elsewhere(AllocationKind kind) {
  return kind == AllocationKind::kAllocatorMap || kind == AllocationKind::kCudaRegistered;
}

}  // namespace tidemark
