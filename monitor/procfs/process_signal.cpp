// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/process_signal.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include "common/fd.h"
#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/kernel_text.h"

namespace tidemark::monitor {
namespace {

// "PID/stat" below /proc, without an allocation.
struct StatPath {
  explicit StatPath(pid_t pid) {
    char* const end = std::to_chars(text.data(), text.data() + 16, pid).ptr;
    std::memcpy(end, "/stat", sizeof "/stat");
  }
  std::array<char, 24> text{};
};

// parse_stat() keeps the name, which takes memory.
std::optional<StatRow> parse_row(std::string_view text) {
  const std::size_t close = text.rfind(") ");
  if (close == std::string_view::npos) {
    return std::nullopt;
  }
  std::string_view rest = text.substr(close + 2);
  const std::string_view state = take_word(rest);
  const auto ppid = parse_number<pid_t>(take_word(rest));
  const auto group = parse_number<pid_t>(take_word(rest));
  const auto session = parse_number<pid_t>(take_word(rest));
  constexpr int kFieldsBetween = 15;  // the 7th to the 21st of proc(5)
  for (int i = 0; i < kFieldsBetween; ++i) {
    take_word(rest);
  }
  const auto start = parse_number<std::uint64_t>(take_word(rest));
  if (state.size() != 1 || !ppid || !group || !session || !start) {
    return std::nullopt;
  }
  return StatRow{state.front(), *ppid, *group, *session, *start};
}

}  // namespace

std::optional<StatRow> read_stat_row(int proc_directory, pid_t pid) {
  const int fd = ::openat(proc_directory, StatPath(pid).text.data(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return std::nullopt;
  }
  std::array<char, 1024> buffer;
  ssize_t size = 0;
  do {
    size = ::read(fd, buffer.data(), buffer.size());
  } while (size < 0 && errno == EINTR);
  ::close(fd);
  return size > 0 ? parse_row({buffer.data(), static_cast<std::size_t>(size)}) : std::nullopt;
}

bool has_ended(char state) { return state == 'Z' || state == 'X' || state == 'x'; }

int signal_process(int proc_directory, const ProcessKey& key, int number) {
  // Once it is open it means one process for ever, so that the start time can be looked at.
  const long opened = ::syscall(SYS_pidfd_open, key.pid, 0);
  if (opened < 0 && errno == ESRCH) {
    return ESRCH;
  }
  const Fd handle(static_cast<int>(opened));  // kernels before 5.3 and full tables have none
  const auto row = read_stat_row(proc_directory, key.pid);
  if (!row || row->start_ticks != key.start_ticks) {
    return ESRCH;
  }
  const long sent = handle ? ::syscall(SYS_pidfd_send_signal, handle.get(), number, nullptr, 0)
                           : ::kill(key.pid, number);
  return sent == 0 ? 0 : errno;
}

bool is_running(int proc_directory, const ProcessKey& key) {
  const auto row = read_stat_row(proc_directory, key.pid);
  return row && row->start_ticks == key.start_ticks && !has_ended(row->state);
}

void send_signal(const ProcessKey& key, int number) {
  if (const auto proc = open_file("/proc", O_RDONLY | O_DIRECTORY)) {
    (void)signal_process(proc->get(), key, number);
  }
}

}  // namespace tidemark::monitor
