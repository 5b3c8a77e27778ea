// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tidemark::monitor {

// Who was found to hold a file: the strongest counts.
enum class Holder { kNone, kStranger, kJob };

// The files that a search is about: all on one file system.
class WantedFiles {
 public:
  explicit WantedFiles(dev_t device = 0) : device_(device) {}

  // `name`: its last path component. False when it is known already, by another name.
  bool add(ino_t inode, std::string_view name);
  // What the process is whose files are marked next.
  void begin_process(Holder kind) { searched_ = kind; }
  void mark(ino_t inode);

  dev_t device() const { return device_; }
  Holder holder_of(ino_t inode) const { return holders_.at(inode); }
  // Whether a wanted file may have this name. Names are compared by their hashes.
  bool may_be_named(std::size_t name_hash) const { return name_hashes_.contains(name_hash); }
  // No file is without a holder.
  bool are_all_held() const { return unheld_ == 0; }

 private:
  dev_t device_;
  std::unordered_map<ino_t, Holder> holders_;
  std::unordered_set<std::size_t> name_hashes_;
  std::size_t unheld_ = 0;
  Holder searched_ = Holder::kStranger;
};

enum class Searched { kYes, kGone, kRefused };

// Marks the files that the text of a /proc/PID/maps names, as dev and inode; `text` may be cut
// at any line.
void mark_mapped_files(std::string_view text, WantedFiles& wanted);

// Searches processes for the files that they hold, and remembers what it found: a process of which
// no thread has run since holds what it held then. Most processes of a machine sleep, so this saves
// most of the work of all passes but the first. Not thread-safe.
class HolderSearch {
 public:
  explicit HolderSearch(std::string proc_root) : proc_root_(std::move(proc_root)) {}

  // Marks in `wanted` what this process maps or has open. kRefused when the kernel lets us see
  // neither or only one of both; what was seen is marked all the same.
  Searched mark_held_files(pid_t pid, WantedFiles& wanted);
  // Forgets all processes but these.
  void keep_only(const std::vector<pid_t>& pids);

 private:
  // What a process held when its threads had run for as long as `activity` says.
  struct Found {
    std::uint64_t activity = 0;
    dev_t device = 0;
    std::vector<ino_t> mapped;             // on the device, wanted or not
    std::vector<std::size_t> open_hashes;  // of the names of all files that it had open
  };
  static bool mark_again(const Found& found, WantedFiles& wanted);

  std::string proc_root_;
  std::unordered_map<pid_t, Found> found_;
};

}  // namespace tidemark::monitor
