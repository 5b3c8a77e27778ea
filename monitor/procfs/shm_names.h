// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>

namespace tidemark::monitor {

// What the name of a file in /dev/shm tells about its maker.
struct ShmName {
  std::string_view maker;    // "torch", "nccl", ...; "" when the pattern is not known
  std::optional<pid_t> pid;  // of the maker, in the maker's own pid namespace
};

// `path` is relative to /dev/shm; its first component decides.
ShmName read_shm_name(std::string_view path);

// Files of our own (the marker rings), which are no leak of the job.
bool is_own_shm_file(std::string_view path);

}  // namespace tidemark::monitor
