// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"

namespace tidemark::monitor {

// /proc/PID/stat, as far as we use it.
struct StatFields {
  pid_t pid = 0;
  // Points into the text; raw bytes: may hold blanks, parentheses and newlines.
  std::string_view comm;
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

// nullopt: not such a line. Allocates nothing.
std::optional<StatFields> parse_stat(std::string_view text);

// Reads PID/stat below an open /proc; without the name. nullopt: there is no such process, or its
// line makes no sense. Allocates nothing.
std::optional<StatFields> read_stat(int proc_directory, pid_t pid);
// A zombie has ended.
bool has_ended(char state);
// The same of a process: one whose main thread has ended lives as long as another of its threads.
bool has_ended(const StatFields& process);

// /proc/PID/statm, as far as we use it: a tenth of the price of status. All zero for what has no
// memory: zombies, exiting processes, kernel threads.
struct StatmFields {
  std::uint64_t size_pages = 0;
  std::uint64_t resident_pages = 0;
  std::uint64_t shared_pages = 0;  // of the resident ones: of files and shared memory

  bool operator==(const StatmFields&) const = default;
};

Result<StatmFields> parse_statm(std::string_view text);

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

// /proc/meminfo, as far as we use it. Lines that are missing stay unknown.
struct MeminfoFields {
  std::optional<std::uint64_t> total_bytes;
  std::optional<std::uint64_t> available_bytes;
  std::optional<std::uint64_t> swap_total_bytes;
  std::optional<std::uint64_t> swap_free_bytes;
  std::optional<std::uint64_t> shmem_bytes;
};
MeminfoFields parse_meminfo(std::string_view text);

// /proc/pressure/memory or a control group's memory.pressure: percent of the last 10 s.
struct PressureFields {
  std::optional<double> some_avg10;
  std::optional<double> full_avg10;
};
PressureFields parse_pressure(std::string_view text);

// Whether the program of "/proc/PID" was started with more rights than its user has (set-user-ID,
// set-group-ID, capabilities of its file): what the kernel told its loader. False where that cannot
// be read.
bool has_raised_privileges(const std::string& process_folder);

}  // namespace tidemark::monitor
