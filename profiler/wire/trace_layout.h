// SPDX-License-Identifier: Apache-2.0
// The trace file of one process: written inside the target, read outside while it runs and after
// its death. Freestanding: no pointers, offsets are from the start of the file, byte order is the
// machine's own. docs/wire-format.md tabulates it; a change touches both and kFormatVersion.
//
// The file only grows. It begins with the header; tables follow in extents, each listed in the
// header once it is mapped and zeroed. What is behind the items that were handed out may be a hole,
// for which the file system has allocated nothing yet. Item i of a table is the i-th in its
// extents, taken in their order. Sites and nodes are used again: a reader believes a stack only if
// its site is the same before and after the nodes were read (Site::ready). Whatever a reader finds
// may be half written or hostile: check bounds.
//
// Example: 4711-88123456789.trace, of a program with two blocks that are not freed.
//
//   offset  bytes
//        0   4096  header   magic "TDMKtrac", pid 4711, stage kRecording,
//                           table[]: one extent each, at the offsets below
//     4096   8192  strings  "/opt/train"                                   used 10
//    12288   4096  modules  0: [0x400000, 0x452000) path 0+10, bias 0      used 1
//    16384  24576  nodes    0: the root                                    used 5
//                           1: 0x401136  parent 0    main
//                           2: 0x4012a0  parent 1    main > load
//                           3: 0x401310  parent 2    main > load > read
//                           4: 0x401410  parent 1    main > init
//    40960  16384  sites    0: node 3, kHeap, alloc 12288 bytes, free 8192 used 2
//                           1: node 4, kHeap, alloc 65536 bytes, free 0
//    57344  24576  live     bucket 82, slot 0: 0x5581e0 size 4096  site 0 epoch 12
//                           bucket 87, slot 0: 0x560000 size 65536 site 1 epoch 0
//    81920   4096  ranges   (no mapping)                                   used 0
//    86016   4096  codes    (no Python)                                    used 0
//    90112         end: header.file_bytes
//
// From a block to its stack: the block at 0x5581e0 is in bucket_of(0x5581e0, 128 buckets) = 82 of
// the only level of the live table. Its record says 4096 bytes, allocated 12 seconds after
// created_ns, at site 0. Site 0 begins with node 3: 0x401310, called from node 2: 0x4012a0, called
// from node 1: 0x401136, whose parent is the root. All three addresses lie in module 0; less its
// load_bias they are addresses in the symbol table of /opt/train: read, called by load, called by
// main. Two of the three blocks of this site were freed; 4096 of its 12288 bytes are live.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tidemark::wire {

inline constexpr std::uint64_t kMagic = 0x636172744b4d4454;  // "TDMKtrac" in little endian
inline constexpr std::uint32_t kFormatVersion = 2;
inline constexpr std::size_t kHeaderBytes = 4096;

// A trace file is named PID-CREATED_NS.trace; until it can be read, with kUnfinishedSuffix behind.
inline constexpr char kTraceSuffix[] = ".trace";
inline constexpr char kUnfinishedSuffix[] = ".new";

// A file in the folder of the traces on which the run that reads them holds a lock, by flock(2),
// for as long as it lives. If nobody holds it, nobody reads what a tracer would put there: it then
// makes no file, and none grows. A folder without it belongs to no run and is used as it is.
inline constexpr char kOwnerLock[] = ".owner";

// The environment variable with the request to the tracer; see trace_request.h.
inline constexpr char kRequestVariable[] = "TIDEMARK_TRACE";

enum class Mode : std::uint32_t {
  kDormant = 0,  // preloaded, records nothing, can be woken
  kSampled = 1,  // blocks that a Poisson process over allocated bytes picks
  kExact = 2,    // every block
};

// What the process last said of itself; whether it is alive only the kernel knows.
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
  kThreadStart = 8,     // no memory: a thread was started here, which each block stands for
};
inline constexpr std::uint8_t kMaxMemoryKind = 7;

enum class NodeKind : std::uint16_t {
  kNative = 0,  // value: program counter
  kPython = 1,  // value: number of a code object (upper half) and of an instruction (lower half)
  // No value. What is further out is the stack of the thread that started this one: of threads that
  // run no Python, in a process that does.
  kThreadStart = 2,
};
constexpr std::uint64_t pack_python(std::uint32_t code, std::uint32_t unit) {
  return (std::uint64_t{code} << 32U) | unit;
}
inline constexpr std::uint32_t kNoCode = 0xffff'ffff;  // there was no room for it
inline constexpr std::uint32_t kNoUnit = 0xffff'ffff;  // the frame had not begun

// A stack is a path through the tree of nodes: the innermost frame's node, its parent the caller.
// Node 0 is the root, below the outermost frame; it stands for no frame.
struct StackNode {
  std::uint64_t value;
  std::uint32_t parent;
  std::uint16_t kind;     // NodeKind
  std::uint16_t modules;  // how many were listed when it was made, at most 65,535
  // For the tracer: nodes and sites that lead to this one (0: it is free, and `parent` is the next
  // free one), and a part of the hash of the stack.
  std::uint32_t uses;
  std::uint32_t check;
};
static_assert(sizeof(StackNode) == 24);

// An object file that was mapped when a frame in it was first seen. One that was unloaded and one
// that was loaded at the same address later are both listed: a frame belongs to the last module at
// its address among the first StackNode::modules.
struct Module {
  std::uint64_t begin;  // addresses
  std::uint64_t end;
  std::uint64_t load_bias;    // address in memory minus address in the file's symbol table
  std::uint32_t path_offset;  // into the strings
  std::uint32_t path_bytes;
  std::uint32_t reserved;
  std::uint32_t build_id_bytes;  // 0: has none
  std::uint8_t build_id[20];
  std::uint32_t ready;  // 1 once all of it is written
};
static_assert(sizeof(Module) == 64);

// A code object of Python that was in a stack. An instruction is told by its distance from the
// first one, in units of two bytes; the line table, as CPython has it, gives its line. The same
// code object may be listed twice.
struct PythonCode {
  std::uint32_t file_offset;  // into the strings, in UTF-8
  std::uint32_t file_bytes;
  std::uint32_t name_offset;
  std::uint32_t name_bytes;
  std::uint32_t lines_offset;
  std::uint32_t lines_bytes;  // 0: too long to be copied; only the first line is known
  std::uint32_t first_line;
  std::uint16_t minor;  // of Python 3, which the format of the line table depends on
  std::uint16_t reserved;
  std::uint32_t ready;  // 1 once all of it is written
  std::uint32_t reserved_end;
};
static_assert(sizeof(PythonCode) == 40);

// Whether stacks have frames of Python.
enum class PythonFramesState : std::uint32_t {
  kNone = 0,     // there is no interpreter in the process, as far as the tracer has seen
  kWaiting = 1,  // there is one, which has not run Python code yet when a block was recorded
  kWalked = 2,
  kOff = 3,  // `python_problem` says why
};

// Blocks are counted in parts of 1/kBlockUnit: a sampled block stands for a fraction of blocks.
inline constexpr std::uint64_t kBlockUnit = 256;

// What one call stack allocated. Live = alloc - free; the two are not read at one instant. Several
// sites may stand for the same stack and kind: add them up. A site of the heap that has freed all
// of few and small blocks may be used for another stack; what it counted is then in
// Header::recycled.
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
  // 0: node and kind are not written, or the site is being recycled. Else one more each time that
  // the site is used for another stack.
  std::atomic<std::uint32_t> ready;
  std::uint32_t check;  // for the tracer: a part of the hash of the stack
};
static_assert(sizeof(Site) == 64);

// What sites counted that are used for other stacks now. They have freed all of it.
struct RecycledSites {
  std::atomic<std::uint64_t> sites;
  std::atomic<std::uint64_t> bytes;
  std::atomic<std::uint64_t> block_units;
  std::atomic<std::uint64_t> temporary_block_units;
};
static_assert(sizeof(RecycledSites) == 32);

// When a block was allocated: seconds since the header's created_ns, or a step once steps are
// known.
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

// The live blocks, in a hash table: each extent of the live table is one level of it, with a power
// of two of buckets. A block is in one of two buckets (bucket_of) of one level.
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

enum class Table : std::uint32_t { kStrings, kModules, kNodes, kSites, kLive, kRanges, kCodes };
inline constexpr std::size_t kTables = 7;
inline constexpr std::size_t kMaxExtents = 24;

constexpr std::size_t item_bytes(Table table) {
  constexpr std::size_t kBytes[kTables] = {1,
                                           sizeof(Module),
                                           sizeof(StackNode),
                                           sizeof(Site),
                                           sizeof(LiveBucket),
                                           sizeof(MapRange),
                                           sizeof(PythonCode)};
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

// What did not fit or could not be done. All but `reentered` are printed with every report.
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

// Written by the tool; the target reads it when it next records or skips enough bytes.
struct alignas(64) Control {
  std::atomic<std::uint32_t> mode;
  std::atomic<std::uint32_t> epoch;  // of the blocks that are allocated now
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
  std::atomic<std::uint32_t> forked;  // 1: made by fork; the blocks of its parent are not listed
  std::atomic<std::uint32_t> extend_errno;
  std::atomic<std::uint32_t> python;  // PythonFramesState
  std::atomic<std::uint64_t> file_bytes;
  std::atomic<std::uint64_t> private_bytes;         // memory that the tracer uses besides this file
  std::atomic<std::uint64_t> periods[kMaxPeriods];  // of sampling, in bytes; [0] is 0: exact
  std::atomic<std::uint32_t> period_count;
  std::uint32_t reserved;
  char reason[96];          // what it does not record, with a 0 at the end
  char python_problem[96];  // why stacks have no frames of Python, likewise
  Losses losses;
  Control control;
  TableDirectory table[kTables];
  RecycledSites recycled;
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

// The two buckets of a level where a block may be; `buckets` is a power of two. The first one is
// near those of the neighbouring addresses, so that blocks which are allocated in a row mostly
// share cache lines. The second one may be any.
constexpr std::uint64_t bucket_of(std::uint64_t address, std::uint64_t buckets, bool second) {
  constexpr unsigned kPageBits = 12;
  constexpr unsigned kShareBits = 8;  // about as many small blocks as a bucket has slots
  constexpr std::uint64_t kShares = 1U << (kPageBits - kShareBits);
  if (second) {
    return mix(address) & (buckets - 1);
  }
  // Rotated by the page, because many large blocks begin at the start of one.
  const std::uint64_t page = mix(address >> kPageBits);
  return (page * kShares + (((address >> kShareBits) ^ (page >> 32U)) & (kShares - 1))) &
         (buckets - 1);
}

}  // namespace tidemark::wire
