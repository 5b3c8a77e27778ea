// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "profiler/tracer/bounded_lock.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::tracer {

// Items in the first extent of a table; each further extent has twice as many as the one before.
// Small, because a job may fork a thousand processes, and each has a file.
constexpr std::uint64_t first_items(wire::Table table) {
  constexpr std::uint64_t kItems[wire::kTables] = {8192, 64, 1024, 256, 128, 64, 100};
  return kItems[static_cast<std::size_t>(table)];
}

struct ItemPlace {
  std::size_t extent;
  std::uint64_t position;
};

// How many items so many extents have.
constexpr std::uint64_t items_in(wire::Table table, std::size_t extents) {
  return first_items(table) * ((std::uint64_t{1} << extents) - 1);
}

constexpr ItemPlace place_of(wire::Table table, std::uint64_t index) {
  const std::uint64_t first = first_items(table);
  const auto extent = static_cast<std::size_t>(std::bit_width(index / first + 1) - 1);
  return {extent, index - items_in(table, extent)};
}

// Why no trace file can be made in this folder, or need be: an error number; EOWNERDEAD: the run
// that would read it has ended without removing the folder. 0: one can be made, as far as can be
// told. Uses little stack and changes no memory, so that a child of vfork may ask.
int check_trace_folder(const char* directory) noexcept;

// The trace file of this process, mapped. Grows while threads use it; what is mapped never moves.
// What is touched was allocated on the file system before: a full disk is an error here, not a
// SIGBUS in the target. Where items are handed out one after the other an extent is allocated in
// parts, or half of the file would be memory that nobody needs yet. A descriptor is kept open.
// Programs that close all descriptors close that too; then the file is opened by its path again. A
// file that nobody reads does not grow.
class TraceStore {
 public:
  // Creates the file in `directory`, whose name must stay where it is. False: no file, and error()
  // says why.
  bool create(const char* directory, std::uint64_t most_bytes) noexcept;
  // Whether forked children inherit none of the mappings. Before create().
  void hide_from_children(bool hide) noexcept { hidden_from_children_ = hide; }
  // Renames the file to its final name, under which readers look for it.
  bool publish() noexcept;
  // In a forked child that did not inherit the mappings but returns into a hook that uses them:
  // maps zeroed private memory at their addresses.
  void cover_with_private_memory() noexcept;
  // Forgets the file. `unmap`: its mappings are there.
  void abandon(bool unmap) noexcept;

  wire::Header* header() const noexcept { return header_; }
  int error() const noexcept { return error_; }

  // The number of extents, which only grows.
  std::size_t extents(wire::Table table) const noexcept {
    return extents_[static_cast<std::size_t>(table)].load(std::memory_order_acquire);
  }
  template <typename T>
  T* extent(wire::Table table, std::size_t index) const noexcept {
    return static_cast<T*>(bases_[static_cast<std::size_t>(table)][index]);
  }
  // For how many items there is memory.
  std::uint64_t room(wire::Table table) const noexcept {
    return room_[static_cast<std::size_t>(table)].load(std::memory_order_acquire);
  }
  // nullptr: there is no such item yet.
  template <typename T>
  T* item(wire::Table table, std::uint64_t index) const noexcept {
    if (index >= room(table)) {
      return nullptr;
    }
    const ItemPlace place = place_of(table, index);
    return extent<T>(table, place.extent) + place.position;
  }

  // How many items were handed out, by the header, which others can write to.
  std::uint64_t used(wire::Table table) const noexcept {
    return directory(table).used.load(std::memory_order_relaxed);
  }
  // Hands out `count` consecutive items of one extent; extends the table if needed. False: no room,
  // perhaps only for now.
  bool take(wire::Table table, std::uint64_t count, std::uint64_t& index) noexcept;
  // False: take() of one item would fail.
  bool has_room(wire::Table table) noexcept;
  // The last extension of this table failed.
  bool cannot_grow(wire::Table table) const noexcept {
    return retry_at_ns_[static_cast<std::size_t>(table)].load(std::memory_order_relaxed) != 0;
  }
  // Makes more room than for `known` items, unless there is already. False: another thread is doing
  // it, or it cannot be done.
  bool make_room(wire::Table table, std::uint64_t known) noexcept;
  // Makes room ahead, then stops all system calls of the tracer: see sys::g_calls_stopped.
  void stop_system_calls() noexcept;

 private:
  template <typename Visit>
  void for_each_mapping(Visit visit) noexcept;
  bool map_header(int fd) noexcept;
  bool allocate(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept;
  bool add_extent(int fd, wire::Table table) noexcept;
  bool add_part(int fd, wire::Table table, std::size_t index) noexcept;
  int reopen() noexcept;
  bool is_abandoned() noexcept;
  void fail(int error) noexcept;
  wire::TableDirectory& directory(wire::Table table) const noexcept {
    return header_->table[static_cast<std::size_t>(table)];
  }

  static constexpr std::size_t kPathBytes = 4200;

  wire::Header* header_ = nullptr;
  std::atomic<std::size_t> extents_[wire::kTables] = {};
  std::atomic<std::uint64_t> room_[wire::kTables] = {};
  void* bases_[wire::kTables][wire::kMaxExtents] = {};
  std::uint64_t last_offset_[wire::kTables] = {};  // of the last extent; with the lock
  BoundedLock extend_lock_;
  std::atomic<std::uint64_t> retry_at_ns_[wire::kTables] = {};  // 0: the last extension succeeded
  std::uint64_t retry_delay_ns_[wire::kTables] = {};            // with the lock
  std::uint64_t end_ = 0;                                       // of the file; with the lock
  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
  const char* directory_ = nullptr;
  int error_ = 0;
  int kept_fd_ = 0;  // 0: none
  bool hidden_from_children_ = false;
  bool covered_ = false;
  char path_[kPathBytes] = {};
};

}  // namespace tidemark::tracer
