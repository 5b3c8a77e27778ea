// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.h"

namespace tidemark::monitor {

// /proc/PID/stat, as far as we use it.
struct StatFields {
  pid_t pid = 0;
  std::string comm;  // raw bytes: may hold blanks, parentheses and newlines
  char state = '?';
  pid_t ppid = 0;
  pid_t process_group = 0;
  pid_t session = 0;
  std::uint64_t cpu_ticks = 0;  // user + system
  std::uint32_t threads = 0;
  std::uint64_t start_ticks = 0;  // since boot
  // Address of the bottom of its stack: random at every exec, kept by fork. 0 without the right to
  // trace the process.
  std::uint64_t stack_start = 0;
};

Result<StatFields> parse_stat(std::string_view text);

}  // namespace tidemark::monitor
