// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/process_key.h"

// Signals to exactly one process, whoever has its pid by now. Nothing here allocates but
// send_signal().
namespace tidemark::monitor {

// Sends a signal to the process that `key` means and to no other, whoever has its pid by now.
// 0, or an errno: ESRCH when it has ended.
int signal_process(int proc_directory, const ProcessKey& key, int number);
// Whether it runs; a zombie does not.
bool is_running(int proc_directory, const ProcessKey& key);

// As signal_process(), with the /proc of this machine. One that has ended by now, or is not ours to
// signal, is no concern here.
void send_signal(const ProcessKey& key, int number);

}  // namespace tidemark::monitor
