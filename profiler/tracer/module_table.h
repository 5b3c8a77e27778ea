// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "profiler/tracer/bounded_lock.h"
#include "profiler/tracer/python/interpreter.h"
#include "profiler/tracer/trace_store.h"
#include "profiler/tracer/unwind/byte_reader.h"

struct dl_find_object;
struct link_map;

namespace tidemark::tracer {

// Writes the object files that frames were seen in to the trace file, for a reader that may run
// when they are unloaded. Calls only `_dl_find_object` (glibc 2.35), which is lock-free.
//
// Code at an address can change: dlclose unloads a module, dlopen puts another one there. Two
// things tell such code apart. The generation identifies all modules together; it invalidates the
// stack cache. A mark identifies the modules of one stack; it is mixed into the keys of its nodes.
class ModuleTable {
 public:
  constexpr ModuleTable() noexcept = default;  // to be bound before use
  constexpr explicit ModuleTable(TraceStore& store) noexcept : store_(&store) {}
  // `python`: gets to know the modules, one of which may be the interpreter.
  void bind(TraceStore& store, PythonInterpreter& python) noexcept {
    store_ = &store;
    python_ = &python;
  }

  // Looks up `_dl_find_object`, or takes a substitute for it, and gets memory; without memory no
  // module is written. Not in a hook.
  using FindObject = int (*)(void*, dl_find_object*);
  void set_up() noexcept;
  void set_up(FindObject find) noexcept;
  // Writes the modules of these addresses unless they are written already. Only for frames of the
  // calling thread: their modules cannot be unloaded meanwhile.
  void add_modules_of(const std::uint64_t* pcs, std::size_t count) noexcept;
  // Around each call of dlclose.
  void before_dlclose() noexcept;
  void after_dlclose() noexcept;
  // A module may have been unloaded. `begin`: of the one whose handle was closed, or 0. Not in a
  // hook.
  void on_dlclose(std::uint64_t begin) noexcept;
  // Brings the generation up to date if one of these addresses, of frames of the calling thread,
  // lies where a module was unloaded and another one may have been loaded.
  void recheck(const std::uint64_t* pcs, std::size_t count) noexcept {
    if (closed_end_.load(std::memory_order_relaxed) != 0) {
      recheck_closed(pcs, count);
    }
  }
  // Covers all addresses that recheck() looks at; {0, 0}: there are none.
  ByteRange closed_range() const noexcept {
    return {closed_begin_.load(std::memory_order_relaxed),
            closed_end_.load(std::memory_order_relaxed)};
  }
  // Changes when a module is loaded where another one was, and back when that one returns: a
  // program that loads two modules alternately has two generations, however often it does so.
  std::uint64_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }
  // For each frame of a stack a mark of the modules from it to the outermost frame, which tells
  // them from other modules at the same addresses. False: no marks are needed and none are set.
  // After recheck().
  bool marks(const std::uint64_t* pcs, std::size_t count, std::uint64_t* marks) noexcept {
    return marked_end_.load(std::memory_order_relaxed) != 0 && find_marks(pcs, count, marks);
  }
  void clear() noexcept;  // in a forked child

 private:
  // What is known of a module without reading the trace file.
  struct Entry {
    std::atomic<std::uint64_t> begin;  // 0: none
    std::uint64_t end;
    const link_map* linked;
    const void* unwind_table;
    std::uint64_t identity;  // of its file
    // The identity of the first module here, which has no mark if it shared no address with an
    // earlier one. The mark of all others is their identity.
    std::uint64_t unmarked;
    std::uint64_t unmarked_end;
    std::atomic<std::uint64_t> mark;  // of the module that is here now
    std::atomic<bool> closed;         // it was unloaded, or may have been
    bool overlapped;                  // another module with another beginning lies there now
    std::atomic<bool> written;        // to the trace file, since it came here
  };

  void update(const dl_find_object& found, bool write_it) noexcept;
  void recheck_closed(const std::uint64_t* pcs, std::size_t count) noexcept;
  std::span<Entry> entries() noexcept { return {entries_, entries_ == nullptr ? 0 : kSlots}; }
  Entry* slot_for(std::uint64_t begin) noexcept;
  std::uint64_t mark_at(const dl_find_object& found) noexcept;
  static bool is_same(const Entry& entry, const dl_find_object& found) noexcept;
  void replace(Entry& entry, const dl_find_object& found) noexcept;
  void set_mark(Entry& entry, std::uint64_t begin, std::uint64_t end, bool is_first) noexcept;
  bool find_marks(const std::uint64_t* pcs, std::size_t count, std::uint64_t* marks) noexcept;
  void update_closed_range() noexcept;
  void forget_python(std::uint64_t closed) noexcept;
  void write_module(const dl_find_object& found) noexcept;
  bool add_path(const link_map& linked, std::uint32_t& offset, std::uint32_t& bytes) noexcept;

  static constexpr std::size_t kSlots = 4096;  // a power of two
  static constexpr std::size_t kPathBytes = 4096;

  // What every hook reads comes first, so that it shares cache lines.
  TraceStore* store_ = nullptr;
  PythonInterpreter* python_ = nullptr;  // nullptr: nobody wants to know
  FindObject find_ = nullptr;
  std::atomic<std::uint64_t> generation_ = 0;
  // See closed_range().
  std::atomic<std::uint64_t> closed_begin_ = 0;
  std::atomic<std::uint64_t> closed_end_ = 0;
  // Covers all modules that have a mark, or had one.
  std::atomic<std::uint64_t> marked_begin_ = 0;
  std::atomic<std::uint64_t> marked_end_ = 0;
  BoundedLock lock_;
  Entry* entries_ = nullptr;  // kSlots of them, by a hash of their beginning
  char program_[kPathBytes] = {};
};

}  // namespace tidemark::tracer
