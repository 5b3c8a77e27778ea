// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiler/tracer/bounded_lock.h"
#include "profiler/tracer/trace_store.h"
#include "profiler/tracer/unwind/byte_reader.h"

struct dl_find_object;
struct link_map;

namespace tidemark::tracer {

// The object files that frames were seen in: for the reader, which runs when they may be gone.
// Asks only `_dl_find_object` (glibc 2.35), which takes no lock and may be called in any state.
class ModuleTable {
 public:
  constexpr ModuleTable() noexcept = default;  // to be bound before use
  constexpr explicit ModuleTable(TraceStore& store) noexcept : store_(&store) {}
  void bind(TraceStore& store) noexcept { store_ = &store; }

  // Looks up what it needs of the dynamic linker, or takes another one in its place. Not in a hook.
  using FindObject = int (*)(void*, dl_find_object*);
  void set_up() noexcept;
  void set_up(FindObject find) noexcept;
  // Lists the modules of these addresses unless they are listed. Only for frames of the calling
  // thread: their modules cannot be closed meanwhile.
  void add_modules_of(const std::uint64_t* pcs, std::size_t count) noexcept;
  // A module may have been closed: `begin` is that of the one whose handle was given up, or 0. Not
  // in a hook.
  void on_dlclose(std::uint64_t begin) noexcept;
  // Whether other code may have come to a place where code was closed, and if so at one of these
  // addresses; the generation is right afterwards. Of the calling thread's frames, as above.
  void recheck(const std::uint64_t* pcs, std::size_t count) noexcept {
    if (closed_end_.load(std::memory_order_relaxed) != 0) {
      recheck_closed(pcs, count);
    }
  }
  // The places that recheck() asks about lie in here; {0, 0}: there are none.
  ByteRange closed_range() const noexcept {
    return {closed_begin_.load(std::memory_order_relaxed),
            closed_end_.load(std::memory_order_relaxed)};
  }
  // What the code at all places is entry by together. It changes when a module comes to a place
  // where another one was, and back when that one returns: a program that opens and closes two
  // modules by turns has two generations, however often it does so.
  std::uint64_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }
  // What tells the frames of a stack, from each one to the outermost, from frames with the same
  // addresses in other modules: it depends on those modules alone. False: nothing is needed, and
  // nothing is written. After recheck().
  bool marks(const std::uint64_t* pcs, std::size_t count, std::uint64_t* marks) noexcept {
    return marked_end_.load(std::memory_order_relaxed) != 0 && find_marks(pcs, count, marks);
  }
  void clear() noexcept;  // in a forked child

 private:
  // What is entry of a module without reading the shared file.
  struct Entry {
    std::atomic<std::uint64_t> begin;  // 0: none
    std::uint64_t end;
    const link_map* linked;
    const void* unwind_table;
    std::uint64_t identity;  // of its file
    // The module that has no mark: the first one that was here, where no other one was before. All
    // others have their identity.
    std::uint64_t unmarked;
    std::uint64_t unmarked_end;
    std::atomic<std::uint64_t> mark;  // of the one that is here now
    std::atomic<bool> closed;         // it was closed, or may have been
    bool overlapped;                  // and another one lies there, in part, by another beginning
    std::atomic<bool> written;  // in the shared file, after the last one that was at its place
  };

  void update(const dl_find_object& found, bool write_it) noexcept;
  void recheck_closed(const std::uint64_t* pcs, std::size_t count) noexcept;
  Entry* slot_for(std::uint64_t begin) noexcept;
  std::uint64_t mark_at(const dl_find_object& found) noexcept;
  static bool is_same(const Entry& entry, const dl_find_object& found) noexcept;
  void replace(Entry& entry, const dl_find_object& found) noexcept;
  void set_mark(Entry& entry, std::uint64_t begin, std::uint64_t end, bool is_first) noexcept;
  bool find_marks(const std::uint64_t* pcs, std::size_t count, std::uint64_t* marks) noexcept;
  void update_closed_range() noexcept;
  void write_module(const dl_find_object& found) noexcept;
  bool add_path(const link_map& linked, std::uint32_t& offset, std::uint32_t& bytes) noexcept;

  static constexpr std::size_t kSlots = 4096;  // a power of two
  static constexpr std::size_t kPathBytes = 4096;

  // What every hook reads first, together.
  TraceStore* store_ = nullptr;
  FindObject find_ = nullptr;
  std::atomic<std::uint64_t> generation_ = 0;
  // All places where code was closed lie in here; 0: there are none.
  std::atomic<std::uint64_t> closed_begin_ = 0;
  std::atomic<std::uint64_t> closed_end_ = 0;
  // Likewise all modules that have a mark, or had one.
  std::atomic<std::uint64_t> marked_begin_ = 0;
  std::atomic<std::uint64_t> marked_end_ = 0;
  BoundedLock lock_;
  Entry entries_[kSlots] = {};
  char program_[kPathBytes] = {};
};

}  // namespace tidemark::tracer
