// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "common/process_key.h"

// Signals to exactly one process, whoever has its pid by now. Nothing here allocates but
// send_signal().
namespace tidemark::monitor {

// What /proc/PID/stat says, without the name.
struct StatRow {
  char state = '?';
  pid_t ppid = 0;
  pid_t group = 0;
  pid_t session = 0;
  std::uint64_t start_ticks = 0;
};

// nullopt: there is no such process, or its row makes no sense.
std::optional<StatRow> read_stat_row(int proc_directory, pid_t pid);
// A zombie has ended.
bool has_ended(char state);

// Sends a signal to the process that `key` means and to no other, whoever has its pid by now.
// 0, or an errno: ESRCH when it has ended.
int signal_process(int proc_directory, const ProcessKey& key, int number);
// Whether it runs; a zombie does not.
bool is_running(int proc_directory, const ProcessKey& key);

// As signal_process(), with the /proc of this machine. One that has ended by now, or is not ours to
// signal, is no concern here.
void send_signal(const ProcessKey& key, int number);

}  // namespace tidemark::monitor
