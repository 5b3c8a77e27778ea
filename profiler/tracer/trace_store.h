// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "profiler/tracer/bounded_lock.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::tracer {

// How many items the first extent of a table has; each further extent has twice as many as the one
// before. Small: a job may fork a thousand processes, and each has a file.
constexpr std::uint64_t first_items(wire::Table table) {
  constexpr std::uint64_t kItems[wire::kTables] = {8192, 64, 1024, 256, 128, 64};
  return kItems[static_cast<std::size_t>(table)];
}

struct ItemPlace {
  std::size_t extent;
  std::uint64_t position;
};

constexpr ItemPlace place_of(wire::Table table, std::uint64_t index) {
  const std::uint64_t first = first_items(table);
  const auto extent = static_cast<std::size_t>(std::bit_width(index / first + 1) - 1);
  return {extent, index - first * ((std::uint64_t{1} << extent) - 1)};
}

// The shared file of this process, mapped. Grows while threads use it; never moves what is mapped.
// Every extension is allocated on the file system before it is touched: a full disk is an error
// here, not a SIGBUS in the target. A descriptor is kept; where the program has closed it, as some
// close all that they do not know, the file is opened by its path again.
class TraceStore {
 public:
  // Makes the file in `directory`. False: no file, and error() says why.
  bool create(const char* directory, std::uint64_t most_bytes) noexcept;
  // Whether a forked child is to find none of the mappings. Before create().
  void hide_from_children(bool hide) noexcept { hidden_from_children_ = hide; }
  // Makes it visible under its final name.
  bool publish() noexcept;
  // Puts empty memory of this process in the place of all mappings, which it did not inherit: for a
  // hook that was under way when it was forked.
  void cover_with_private_memory() noexcept;
  // Forgets the file of the parent; its mappings were not inherited or are given up.
  void abandon(bool unmap) noexcept;

  wire::Header* header() const noexcept { return header_; }
  int error() const noexcept { return error_; }

  // The extents that are there. Only grows.
  std::size_t extents(wire::Table table) const noexcept {
    return extents_[static_cast<std::size_t>(table)].load(std::memory_order_acquire);
  }
  template <typename T>
  T* extent(wire::Table table, std::size_t index) const noexcept {
    return static_cast<T*>(bases_[static_cast<std::size_t>(table)][index]);
  }
  // nullptr: beyond what is there.
  template <typename T>
  T* item(wire::Table table, std::uint64_t index) const noexcept {
    const ItemPlace place = place_of(table, index);
    return place.extent < extents(table) ? extent<T>(table, place.extent) + place.position
                                         : nullptr;
  }

  // How many items were handed out, as the file says.
  std::uint64_t used(wire::Table table) const noexcept {
    return directory(table).used.load(std::memory_order_relaxed);
  }
  // Hands out `count` items in a row that lie in one extent; extends the table when it is used up.
  // False: there is no room, now or for ever.
  bool take(wire::Table table, std::uint64_t count, std::uint64_t& index) noexcept;
  // False: take() of one item would be in vain.
  bool has_room(wire::Table table) noexcept;
  // The last extension of this table failed.
  bool cannot_grow(wire::Table table) const noexcept {
    return retry_at_ns_[static_cast<std::size_t>(table)].load(std::memory_order_relaxed) != 0;
  }
  // Adds the next extent, or finds that another thread has done so since there were `known`. False:
  // another thread is at it, or it cannot be done.
  bool extend(wire::Table table, std::size_t known) noexcept;
  // Makes room ahead, then ends all system calls of the tracer: see sys::g_calls_stopped.
  void stop_system_calls() noexcept;

 private:
  template <typename Visit>
  void for_each_mapping(Visit visit) noexcept;
  bool map_header(int fd) noexcept;
  bool add_extent(int fd, wire::Table table) noexcept;
  void keep_descriptor(int fd) noexcept;
  bool is_our_file(int fd) const noexcept;
  bool may_use_kept() const noexcept;
  int reopen() noexcept;
  void keep_from_children(void* base, std::uint64_t bytes) noexcept;
  bool has_space_for(int fd, std::uint64_t bytes) noexcept;
  void fail(int error) noexcept;
  wire::TableDirectory& directory(wire::Table table) const noexcept {
    return header_->table[static_cast<std::size_t>(table)];
  }

  static constexpr std::size_t kPathBytes = 4200;

  wire::Header* header_ = nullptr;
  std::atomic<std::size_t> extents_[wire::kTables] = {};
  void* bases_[wire::kTables][wire::kMaxExtents] = {};
  BoundedLock extend_lock_;
  std::atomic<std::uint64_t> retry_at_ns_[wire::kTables] = {};  // could not grow: not tried before
  std::uint64_t retry_delay_ns_[wire::kTables] = {};            // and for how long; of who extends
  std::uint64_t end_ = 0;  // of the file; changed by the thread that extends
  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
  int error_ = 0;
  int kept_fd_ = 0;  // 0: none
  bool hidden_from_children_ = false;
  bool covered_ = false;
  char path_[kPathBytes] = {};
};

}  // namespace tidemark::tracer
