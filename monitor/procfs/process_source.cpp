// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/process_source.h"

#include <fcntl.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/kernel_text.h"
#include "monitor/procfs/proc_files.h"

namespace tidemark::monitor {
namespace {

constexpr int kWalks = 3;
constexpr std::size_t kPieceBytes = 4096;

Result<std::vector<pid_t>> thread_ids(int process_directory) {
  TIDEMARK_TRY_ASSIGN(auto stream, DirectoryStream::open_at(process_directory, "task"));
  std::vector<pid_t> tids;
  while (const dirent* entry = stream.next()) {
    if (const auto tid = parse_number<pid_t>(std::string_view(entry->d_name))) {
      tids.push_back(*tid);
    }
  }
  return tids;
}

}  // namespace

Result<ProcessEntry> read_process_entry(const std::string& proc_root, pid_t pid) {
  TIDEMARK_TRY_ASSIGN(const auto text, read_file(fmt::format("{}/{}/stat", proc_root, pid)));
  const auto stat = parse_stat(text);
  if (!stat) {
    return Error{Errc::kMalformed,
                 fmt::format("{}/{}/stat: not a /proc/PID/stat line", proc_root, pid)};
  }
  ProcessEntry entry;
  entry.key = {pid, stat->start_ticks};
  entry.ppid = stat->ppid;
  entry.process_group = stat->process_group;
  entry.state = stat->state;
  entry.threads = stat->threads;
  entry.cpu_ticks = stat->cpu_ticks;
  entry.comm = std::string(stat->comm);
  TIDEMARK_TRY_ASSIGN(const auto status_text,
                      read_file(fmt::format("{}/{}/status", proc_root, pid)));
  TIDEMARK_TRY_ASSIGN(const auto status, parse_status(status_text));
  entry.uid = status.uid;
  return entry;
}

Result<pid_t> process_of_thread(const std::string& proc_root, pid_t thread) {
  const std::string path = fmt::format("{}/{}/status", proc_root, thread);
  TIDEMARK_TRY_ASSIGN(const auto text, read_file(path));
  constexpr std::string_view kKey = "Tgid:";
  std::string_view rest = text;
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

Result<std::vector<pid_t>> children_of_thread(int process_directory, pid_t tid) {
  const std::string name = fmt::format("task/{}/children", tid);
  TIDEMARK_TRY_ASSIGN(auto fd, open_at(process_directory, name, O_RDONLY));
  std::array<char, kPieceBytes> piece;
  TIDEMARK_TRY_ASSIGN(const auto size, pread_once(fd.get(), piece));
  std::string_view rest(piece.data(), size);
  std::string whole;
  if (rest.size() >= kPieceBytes / 2) {  // the kernel gives a page at a time: there may be more
    TIDEMARK_TRY_ASSIGN(whole, read_to_end(fd.get()));
    rest = whole;
  }
  std::vector<pid_t> pids;
  for (std::string_view word = take_word(rest); !word.empty(); word = take_word(rest)) {
    if (const auto pid = parse_number<pid_t>(word)) {
      pids.push_back(*pid);
    }
  }
  return pids;
}

Result<std::vector<pid_t>> children_of_threads(int process_directory) {
  std::vector<pid_t> pids;
  for (int walk = 1; walk <= kWalks; ++walk) {
    TIDEMARK_TRY_ASSIGN(const auto tids, thread_ids(process_directory));
    pids.clear();
    std::size_t ended = 0;
    for (const pid_t tid : tids) {
      const auto of_thread = children_of_thread(process_directory, tid);
      if (!of_thread) {
        ++ended;
        continue;
      }
      pids.insert(pids.end(), of_thread->begin(), of_thread->end());
    }
    if (ended == tids.size()) {
      return Error{Errc::kNotFound, "no thread has a list of children"};
    }
    if (ended == 0) {
      break;
    }
  }
  return pids;
}

}  // namespace tidemark::monitor
