// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiler/tracer/trace_store.h"

struct dl_find_object;
struct link_map;

namespace tidemark::tracer {

// The object files that frames were seen in: for the reader, which runs when they may be gone.
// Asks only `_dl_find_object` (glibc 2.35), which takes no lock and may be called in any state.
class ModuleTable {
 public:
  constexpr explicit ModuleTable(TraceStore& store) noexcept : store_(store) {}

  // Looks up what it needs of the dynamic linker. Not in a hook.
  void set_up() noexcept;
  // Lists the modules of these addresses unless they are listed. Only for frames of the calling
  // thread: their modules cannot be closed meanwhile.
  void note(const std::uint64_t* pcs, std::size_t count) noexcept;
  // Changes when new frames show a module at a place where another one was.
  std::uint64_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }
  void clear() noexcept;  // in a forked child

 private:
  using FindObject = int (*)(void*, dl_find_object*);

  // What is known of a module without reading the shared file.
  struct Known {
    std::atomic<std::uint64_t> begin;  // 0: none
    std::uint64_t end;
    const link_map* linked;
    const void* unwind_table;
  };

  void note(const dl_find_object& found) noexcept;
  Known* place_for(std::uint64_t begin) noexcept;
  static bool is_same(const Known& known, const dl_find_object& found) noexcept;
  void add(Known& known, const dl_find_object& found) noexcept;
  void list(const dl_find_object& found) noexcept;
  bool add_path(const link_map& linked, std::uint32_t& offset, std::uint32_t& bytes) noexcept;

  static constexpr std::size_t kPlaces = 4096;  // a power of two
  static constexpr std::size_t kPathBytes = 4096;

  TraceStore& store_;
  FindObject find_ = nullptr;
  Known known_[kPlaces] = {};
  std::atomic<std::uint64_t> generation_ = 0;
  std::atomic<bool> adding_ = false;
  char program_[kPathBytes] = {};
};

}  // namespace tidemark::tracer
