// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/process_signal.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "common/fd.h"
#include "common/io.h"
#include "monitor/procfs/proc_files.h"

namespace tidemark::monitor {

int signal_process(int proc_directory, const ProcessKey& key, int number) {
  // Once it is open it means one process for ever, so that the start time can be checked.
  const long opened = ::syscall(SYS_pidfd_open, key.pid, 0);
  if (opened < 0 && errno == ESRCH) {
    return ESRCH;
  }
  const Fd handle(static_cast<int>(opened));  // kernels before 5.3 and full tables have none
  const auto stat = read_stat(proc_directory, key.pid);
  if (!stat || stat->start_ticks != key.start_ticks) {
    return ESRCH;
  }
  const long sent = handle ? ::syscall(SYS_pidfd_send_signal, handle.get(), number, nullptr, 0)
                           : ::kill(key.pid, number);
  return sent == 0 ? 0 : errno;
}

bool is_running(int proc_directory, const ProcessKey& key) {
  const auto stat = read_stat(proc_directory, key.pid);
  return stat && stat->start_ticks == key.start_ticks && !has_ended(*stat);
}

void send_signal(const ProcessKey& key, int number) {
  if (const auto proc = open_file("/proc", O_RDONLY | O_DIRECTORY)) {
    (void)signal_process(proc->get(), key, number);
  }
}

}  // namespace tidemark::monitor
