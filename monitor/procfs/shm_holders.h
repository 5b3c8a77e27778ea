// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace tidemark::monitor {

// The files that a search is about: all on one file system.
struct WantedFiles {
  dev_t device = 0;
  std::unordered_map<ino_t, bool> held;   // by inode; true once a holder was found
  std::unordered_set<std::string> names;  // their last path components
};

enum class Looked { kYes, kGone, kRefused };

// Marks in `wanted` what this process maps or has open. kRefused when the kernel lets us see
// neither or only one of both; what was seen is marked all the same.
Looked look_for_held_files(const std::string& proc_root, pid_t pid, WantedFiles& wanted);

// Marks the files that the text of a /proc/PID/maps names, as dev and inode; `text` may be cut
// at any line.
void mark_mapped_files(std::string_view text, WantedFiles& wanted);

}  // namespace tidemark::monitor
