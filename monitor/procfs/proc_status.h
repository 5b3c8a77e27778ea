// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"

namespace tidemark::monitor {

// /proc/PID/status, as far as we use it. Kernel threads and zombies have no memory lines.
struct StatusFields {
  std::string comm;  // raw bytes: the kernel's "\\" and "\n" escapes are undone
  char state = '?';
  pid_t ppid = 0;
  uid_t uid = 0;                       // effective
  std::optional<pid_t> innermost_pid;  // last number of NSpid: the pid inside its own namespace
  std::optional<std::uint32_t> threads;
  std::optional<std::uint64_t> hwm_bytes;
  std::optional<std::uint64_t> rss_bytes;
  std::optional<std::uint64_t> rss_anon_bytes;
  std::optional<std::uint64_t> rss_file_bytes;
  std::optional<std::uint64_t> rss_shmem_bytes;
  std::optional<std::uint64_t> swap_bytes;
};

// One pass over the text; the sampler calls it for every process at every tick.
Result<StatusFields> parse_status(std::string_view text);

}  // namespace tidemark::monitor
