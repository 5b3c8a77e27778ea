// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/process_entry.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/kernel_text.h"
#include "monitor/procfs/proc_stat.h"
#include "monitor/procfs/proc_status.h"

namespace tidemark::monitor {

Result<ProcessEntry> read_process_entry(const std::string& proc_root, pid_t pid) {
  const auto text = read_file(fmt::format("{}/{}/stat", proc_root, pid));
  if (!text) {
    return text.error();
  }
  auto stat = parse_stat(*text);
  if (!stat) {
    return stat.error();
  }
  ProcessEntry entry;
  entry.key = {pid, stat->start_ticks};
  entry.ppid = stat->ppid;
  entry.process_group = stat->process_group;
  entry.state = stat->state;
  entry.threads = stat->threads;
  entry.cpu_ticks = stat->cpu_ticks;
  entry.comm = std::move(stat->comm);
  const auto status_text = read_file(fmt::format("{}/{}/status", proc_root, pid));
  if (!status_text) {
    return status_text.error();
  }
  const auto status = parse_status(*status_text);
  if (!status) {
    return status.error();
  }
  entry.uid = status->uid;
  return entry;
}

Result<pid_t> process_of_thread(const std::string& proc_root, pid_t thread) {
  const std::string path = fmt::format("{}/{}/status", proc_root, thread);
  const auto text = read_file(path);
  if (!text) {
    return text.error();
  }
  constexpr std::string_view kKey = "Tgid:";
  std::string_view rest = *text;
  std::string_view line;
  while (take_line(rest, line)) {
    if (line.starts_with(kKey)) {
      if (const auto pid = parse_number<pid_t>(trim(line.substr(kKey.size())))) {
        return *pid;
      }
    }
  }
  return Error{Errc::kMalformed, fmt::format("{} names no process", path)};
}

std::optional<std::uint64_t> last_pid(const std::string& proc_root) {
  const auto text = read_file(proc_root + "/loadavg", 4096);
  if (!text) {
    return std::nullopt;
  }
  const std::string_view line = trim(*text);
  const std::size_t blank = line.rfind(' ');
  return blank == std::string_view::npos ? std::nullopt
                                         : parse_number<std::uint64_t>(line.substr(blank + 1));
}

}  // namespace tidemark::monitor
