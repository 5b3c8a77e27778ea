// SPDX-License-Identifier: Apache-2.0
#include "live/target.h"

#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/io.h"
#include "common/redact.h"
#include "common/text.h"
#include "live/find.h"
#include "monitor/procfs/launch_mark.h"
#include "monitor/procfs/proc_files.h"
#include "monitor/procfs/process_handle.h"
#include "monitor/procfs/process_source.h"

namespace tidemark::live {
namespace {

// Of kernel threads and zombies there is nothing to see. One that exits just now has no memory
// either, and no children.
Status check_has_memory(const std::string& proc_root, pid_t pid) {
  const auto text = read_file(fmt::format("{}/{}/status", proc_root, pid));
  const auto status = text ? monitor::parse_status(*text) : text.error();
  if (!status || status->rss_bytes) {
    return ok();
  }
  if (!monitor::has_ended(status->state)) {
    return Error{Errc::kNotFound, fmt::format("{} is a kernel thread, not a program", pid)};
  }
  return status->threads.value_or(1) > 1
             ? ok()
             : Status(Error{Errc::kGone,
                            fmt::format("process {} has exited: its parent, process {}, has not "
                                        "asked for its exit status yet",
                                        pid, status->ppid)});
}

Status add_root(monitor::TreeRoots& roots, const std::string& proc_root, pid_t pid) {
  const auto key = monitor::process_key_of(proc_root, pid);
  if (!key) {
    return Error{key.error().code, fmt::format("there is no process {}", pid),
                 key.error().sys_errno};
  }
  // /proc has threads too, though it does not list them.
  if (const auto process = monitor::process_of_thread(proc_root, pid); process && *process != pid) {
    return Error{Errc::kNotFound, fmt::format("{} is a thread of process {}: use --pid {}", pid,
                                              *process, *process)};
  }
  TIDEMARK_TRY(check_has_memory(proc_root, pid));
  roots.keys.push_back(*key);
  return ok();
}

// For a shell; "" where a person would not type it again, or must not read it: with secrets in it.
std::string command_to_repeat(const std::vector<std::string>& argv) {
  constexpr std::size_t kLongest = 60;
  const std::string line = shell_line(argv);
  const bool has_secret = redact_argv(argv) != fmt::format("{}", fmt::join(argv, " "));
  return has_secret || line.size() > kLongest || escape_text(line) != line ? "" : line;
}

}  // namespace

report::JudgedTarget judged_target(const TargetOptions& target, bool is_over) {
  report::JudgedTarget judged;
  if (!target.command.empty()) {
    judged.command = command_to_repeat(target.command);
  } else if (!is_over) {
    judged.running = target.find_training ? "--find-training"
                     : target.system      ? "--system"
                                          : pid_options(target.pids);
  }
  return judged;
}

monitor::TreeRoots roots_of_command(const ProcessKey& command, const std::string& proc_root) {
  monitor::TreeRoots roots;
  roots.keys = {command};
  roots.children_of = ::getpid();
  auto proc = open_file(proc_root, O_RDONLY | O_DIRECTORY);
  roots.adopts =
      [mark = monitor::launch_mark(),
       proc = std::make_shared<Fd>(proc ? *std::move(proc) : Fd())](const ProcessKey& child) {
        return monitor::has_launch_mark(proc->get(), child.pid, mark);
      };
  return roots;
}

Result<ResolvedTarget> resolve_target(const TargetOptions& target, monitor::ProcessSource& source,
                                      const std::string& proc_root) {
  ResolvedTarget resolved;
  resolved.roots.everything = target.system;
  for (const pid_t pid : target.pids) {
    TIDEMARK_TRY(add_root(resolved.roots, proc_root, pid));
  }
  if (target.find_training) {
    TIDEMARK_TRY_ASSIGN(const auto found, look_for_training(source, proc_root));
    if (!found.picked) {
      resolved.no_pick = monitor::explain_no_pick(found);
      return resolved;
    }
    const monitor::Candidate& job = found.candidates[*found.picked];
    for (const pid_t pid : job.watch) {
      TIDEMARK_TRY(add_root(resolved.roots, proc_root, pid));
    }
    resolved.note =
        fmt::format("found the training job: pid {} (tidemark find says why)", job.key.pid);
  }
  return resolved;
}

}  // namespace tidemark::live
