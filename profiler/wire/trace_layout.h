// SPDX-License-Identifier: Apache-2.0
// The shared file of one traced process: written inside the target, read outside while it runs and
// after its death. Freestanding: no pointers, offsets are from the start of the file, byte order is
// the machine's own. docs/wire-format.md tabulates it; a change touches both and kFormatVersion.
//
// The file only grows. It begins with the header; tables follow in extents, each listed in the
// header once it is allocated on the file system, mapped and zeroed. Item i of a table lies in the
// extents in their order. Whatever a reader finds may be half written or hostile: check bounds.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tidemark::wire {

inline constexpr std::uint64_t kMagic = 0x636172744b4d4454;  // "TDMKtrac" in little endian
inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr std::size_t kHeaderBytes = 4096;

// The environment variable by which the tracer learns what to do; see trace_request.h.
inline constexpr char kRequestVariable[] = "TIDEMARK_TRACE";

enum class Mode : std::uint32_t {
  kDormant = 0,  // preloaded, records nothing, can be woken
  kSampled = 1,  // blocks that a Poisson process over allocated bytes picks
  kExact = 2,    // every block
};

// How far the process is; the last word on it is whether the process lives.
enum class Stage : std::uint32_t {
  kSettingUp = 0,  // do not read yet
  kRecording = 1,
  kReplaced = 2,  // the process called exec: this file is complete
  kExited = 3,    // the process ran its exit handlers
};

enum class SiteKind : std::uint8_t {
  kHeap = 1,          // malloc and its family
  kAnonymousMap = 2,  // mmap without a file
  kSharedMap = 3,     // mmap with MAP_SHARED
  kAllocatorMap = 4,  // mmap made by the allocator itself: holds blocks that are counted already
  kCudaDevice = 5,
  kCudaPinned = 6,      // cudaHostAlloc, cudaMallocHost
  kCudaRegistered = 7,  // cudaHostRegister: pinned, but somebody else's block
};
inline constexpr std::uint8_t kMaxSiteKind = 7;

enum class NodeKind : std::uint32_t {
  kNative = 0,  // value: program counter
  kPython = 1,  // value: index of a code object (upper half) and instruction offset (lower half)
};

// A stack is a path through the tree of nodes: the innermost frame's node, its parent the caller.
// Node 0 is the root, below the outermost frame; it stands for no frame.
struct StackNode {
  std::uint64_t value;
  std::uint32_t parent;
  std::uint32_t kind;  // NodeKind
};
static_assert(sizeof(StackNode) == 16);

// An object file that was mapped when a frame in it was first seen. One that was closed and one
// that came to the same place later are both listed; a frame belongs to the last one that was there
// when its node was made: modules carry the number of nodes that existed when they were added.
struct Module {
  std::uint64_t begin;  // addresses
  std::uint64_t end;
  std::uint64_t load_bias;    // address in memory minus address in the file's symbol table
  std::uint32_t path_offset;  // into the strings
  std::uint32_t path_bytes;
  std::uint32_t nodes_before;
  std::uint32_t build_id_bytes;  // 0: has none
  std::uint8_t build_id[20];
  std::uint32_t ready;  // 1 once all of it is written
};
static_assert(sizeof(Module) == 64);

// Blocks are counted in parts of kBlockUnit: a sampled block stands for a broken number of blocks.
inline constexpr std::uint64_t kBlockUnit = 256;

// What one call stack allocated. Live = alloc - free; the two are not read at one instant. Several
// sites may stand for the same stack and kind: add them up.
struct alignas(64) Site {
  std::atomic<std::uint64_t> alloc_bytes;
  std::atomic<std::uint64_t> alloc_block_units;
  std::atomic<std::uint64_t> free_bytes;
  std::atomic<std::uint64_t> free_block_units;
  std::atomic<std::uint64_t> peak_live_bytes;
  std::atomic<std::uint64_t> temporary_block_units;  // freed before the thread's next allocation
  std::uint32_t node;
  SiteKind kind;
  std::uint8_t truncated;  // the stack was deeper than the tracer walks
  std::uint16_t reserved;
  std::atomic<std::uint32_t> ready;  // 1 once node and kind are written
  std::uint32_t reserved_end;
};
static_assert(sizeof(Site) == 64);

// When a block was born: seconds since the header's created_ns, or a step once steps are known.
inline constexpr std::uint32_t kEpochIsStep = 0x8000'0000;

struct LiveRecord {
  std::uint64_t size_and_period;  // 48 bits of size in bytes, then 8 bits: index into `periods`
  std::uint32_t site;
  std::uint32_t epoch;
};
static_assert(sizeof(LiveRecord) == 16);

constexpr std::uint64_t pack_size(std::uint64_t size_bytes, std::uint8_t period) {
  constexpr std::uint64_t kMost = (std::uint64_t{1} << 48U) - 1;
  return (size_bytes < kMost ? size_bytes : kMost) | (std::uint64_t{period} << 48U);
}
constexpr std::uint64_t unpack_size(std::uint64_t packed) {
  return packed & ((std::uint64_t{1} << 48U) - 1);
}
constexpr std::uint8_t unpack_period(std::uint64_t packed) {
  return static_cast<std::uint8_t>(packed >> 48U);
}

// Blocks that live, in a hash table: an extent of the live table is one level of it, a power of two
// of buckets. A block is in one of two buckets of any level (bucket_of).
inline constexpr std::size_t kSlotsPerBucket = 8;
inline constexpr std::uint64_t kEmptySlot = 0;
inline constexpr std::uint64_t kBusySlot = 1;  // being written

struct alignas(64) LiveBucket {
  std::atomic<std::uint64_t> address[kSlotsPerBucket];
  LiveRecord record[kSlotsPerBucket];
};
static_assert(sizeof(LiveBucket) == 192);

// A mapping, or a part of one that is left. Free slots have bytes == 0.
struct MapRange {
  std::atomic<std::uint64_t> begin;
  std::atomic<std::uint64_t> bytes;
  std::uint32_t site;
  std::uint32_t epoch;
};
static_assert(sizeof(MapRange) == 24);

enum class Table : std::uint32_t { kStrings, kModules, kNodes, kSites, kLive, kRanges };
inline constexpr std::size_t kTables = 6;
inline constexpr std::size_t kMaxExtents = 24;

constexpr std::size_t item_bytes(Table table) {
  constexpr std::size_t kBytes[kTables] = {
      1, sizeof(Module), sizeof(StackNode), sizeof(Site), sizeof(LiveBucket), sizeof(MapRange)};
  return kBytes[static_cast<std::size_t>(table)];
}

struct Extent {
  std::uint64_t offset;
  std::uint64_t items;
};

struct TableDirectory {
  std::atomic<std::uint64_t> used;     // items handed out; not of the live table
  std::atomic<std::uint32_t> extents;  // listed below and complete
  std::uint32_t reserved;
  Extent extent[kMaxExtents];
};
static_assert(sizeof(TableDirectory) == 400);

// What did not fit or could not be done. Printed with every report, but for `reentered`.
struct Losses {
  std::atomic<std::uint64_t> live_full;         // blocks without a place in the live table
  std::atomic<std::uint64_t> sites_full;        // allocations whose stack found no place
  std::atomic<std::uint64_t> ranges_full;       // mappings without a place, or the table was busy
  std::atomic<std::uint64_t> unknown_frees;     // of blocks that are not in the live table (exact)
  std::atomic<std::uint64_t> truncated_stacks;  // allocations with a stack deeper than we walk
  std::atomic<std::uint64_t> empty_stacks;      // allocations whose stack could not be walked
  std::atomic<std::uint64_t> extend_failures;   // the file could not grow; see `extend_errno`
  std::atomic<std::uint64_t> reentered;         // calls made from inside a hook: not recorded
  std::atomic<std::uint64_t> missed_frees;      // seen when the address was handed out again
  std::uint64_t reserved[7];
};
static_assert(sizeof(Losses) == 128);

inline constexpr std::size_t kMaxPeriods = 32;

// Written outside, read by the target when it next looks.
struct alignas(64) Control {
  std::atomic<std::uint32_t> mode;
  std::atomic<std::uint32_t> epoch;  // for the blocks that are born now
  std::atomic<std::uint64_t> sample_every_bytes;
  std::atomic<std::uint64_t> most_file_bytes;
  std::uint64_t reserved[5];
};
static_assert(sizeof(Control) == 64);

struct Header {
  std::uint64_t magic;
  std::uint32_t format_version;
  std::uint32_t header_bytes;
  std::uint32_t pid;         // as the process sees it
  std::uint32_t parent_pid;  // likewise
  std::uint64_t start_ticks;
  std::uint64_t pid_namespace;  // inode
  std::uint64_t created_ns;     // CLOCK_MONOTONIC
  std::atomic<std::uint32_t> stage;
  std::atomic<std::uint32_t> forked;  // 1: born by fork, the blocks of its parent are not listed
  std::atomic<std::uint32_t> extend_errno;
  std::atomic<std::uint32_t> python;  // 0 unknown, 1 walked, 2 off; reserved for Python frames
  std::atomic<std::uint64_t> file_bytes;
  std::atomic<std::uint64_t> private_bytes;         // memory that the tracer uses besides this file
  std::atomic<std::uint64_t> periods[kMaxPeriods];  // of sampling, in bytes; [0] is 0: exact
  std::atomic<std::uint32_t> period_count;
  std::uint32_t reserved;
  char reason[96];  // what it does not record, with a 0 at the end
  Losses losses;
  Control control;
  TableDirectory table[kTables];
};
static_assert(sizeof(Header) <= kHeaderBytes);
static_assert(std::is_standard_layout_v<Header>);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// Mixes all bits of an address into all bits of the result.
constexpr std::uint64_t mix(std::uint64_t value) {
  value ^= value >> 32U;
  value *= 0xd6e8feb86659fd93;
  value ^= value >> 32U;
  value *= 0xd6e8feb86659fd93;
  value ^= value >> 32U;
  return value;
}

// The two buckets of a level where a block may be; `buckets` is a power of two. The first is shared
// with the blocks beside it, and those of a page lie in buckets side by side: what is allocated in
// a row mostly is in the same lines of the cache. The second may be any.
constexpr std::uint64_t bucket_of(std::uint64_t address, std::uint64_t buckets, bool second) {
  constexpr unsigned kPageBits = 12;
  constexpr unsigned kShareBits = 8;  // as many small blocks of malloc as a bucket has slots
  constexpr std::uint64_t kShares = 1U << (kPageBits - kShareBits);
  if (second) {
    return mix(address) & (buckets - 1);
  }
  // Which of the shares of a page is the first differs: many large blocks begin where a page does.
  const std::uint64_t page = mix(address >> kPageBits);
  return (page * kShares + (((address >> kShareBits) ^ (page >> 32U)) & (kShares - 1))) &
         (buckets - 1);
}

}  // namespace tidemark::wire
