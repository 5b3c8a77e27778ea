// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_proc.h"

#include <algorithm>

#include <fmt/format.h>

namespace tidemark::tests {
namespace {

std::string stat_text(const FakeProcess& p) {
  // Field 4 ppid, 5 group, 14/15 cpu, 20 threads, 22 start, 24 rss, 28 stack.
  return fmt::format("{} ({}) {} {} 1 1 0 -1 0 0 0 0 0 7 3 0 0 20 0 1 0 {} 0 {} 0 0 0 {} 0 0\n",
                     p.pid, p.comm, p.state, p.ppid, p.start_ticks,
                     (p.anon_kib + p.file_kib + p.shmem_kib) / 4, p.stack_start);
}

std::string status_text(const FakeProcess& p) {
  if (p.status_malformed) {
    return "?\n";
  }
  std::string text =
      fmt::format("Name:\t{}\nState:\t{} (x)\nPid:\t{}\nPPid:\t{}\nUid:\t0\t0\t0\t0\n", p.comm,
                  p.state, p.pid, p.ppid);
  if (p.state != 'Z') {
    const std::uint64_t rss = p.anon_kib + p.file_kib + p.shmem_kib;
    text += fmt::format("VmHWM:\t{} kB\nVmRSS:\t{} kB\n", rss, rss);
    if (!p.split_unknown) {
      text += fmt::format("RssAnon:\t{} kB\nRssFile:\t{} kB\nRssShmem:\t{} kB\n", p.anon_kib,
                          p.file_kib, p.shmem_kib);
    }
    text += fmt::format("VmSwap:\t{} kB\n", p.swap_kib);
  }
  return text + "Threads:\t1\n";
}

std::string statm_text(const FakeProcess& p) {
  if (p.statm_malformed) {
    return "?\n";
  }
  if (p.state == 'Z' || p.main_thread_ended) {
    return "0 0 0 0 0 0 0\n";
  }
  const std::uint64_t shared_kib = p.file_kib + p.shmem_kib;
  return fmt::format("50000 {} {} 1 0 1 0\n", (p.anon_kib + shared_kib) / 4, shared_kib / 4);
}

std::string rollup_text(const FakeProcess& p) {
  return fmt::format(
      "55d0c0000000-7ffd00000000 ---p 00000000 00:00 0 [rollup]\nRss: {0} kB\nPss: {1} kB\n"
      "Pss_Anon: {1} kB\nPss_File: 0 kB\nPss_Shmem: 0 kB\nPrivate_Clean: 0 kB\n"
      "Private_Dirty: {2} kB\nAnonymous: {0} kB\nSwap: 0 kB\nSwapPss: 0 kB\n",
      p.anon_kib, p.pss_anon_kib, p.private_dirty_kib);
}

}  // namespace

FakeProc::FakeProc() { set_last_pid(last_pid_); }

void FakeProc::set_last_pid(std::uint64_t pid) {
  last_pid_ = pid;
  tree_.write("proc/loadavg", fmt::format("0.00 0.00 0.00 1/1 {}\n", pid));
}

void FakeProc::put(const FakeProcess& process) {
  const auto same = [&](const FakeProcess& other) { return other.pid == process.pid; };
  const auto before = std::find_if(processes_.begin(), processes_.end(), same);
  const bool is_new = before == processes_.end();
  const pid_t parent_before = is_new ? process.ppid : before->ppid;
  std::erase_if(processes_, same);
  processes_.push_back(process);
  std::erase_if(source_.table,
                [&](const monitor::ProcessEntry& entry) { return entry.key.pid == process.pid; });
  auto entry = row(process.pid, process.ppid, process.start_ticks);
  entry.comm = process.comm;
  entry.state = process.state;
  source_.table.push_back(entry);

  const std::string folder = fmt::format("proc/{}/", process.pid);
  std::string cmdline;
  for (const std::string& argument : process.argv) {
    cmdline += argument + '\0';
  }
  tree_.write(folder + "stat", stat_text(process));
  tree_.write(folder + "status", status_text(process));
  tree_.write(folder + "statm", statm_text(process));
  tree_.write(folder + "cmdline", cmdline);
  tree_.write(folder + "environ", process.environ);
  tree_.remove(folder + "exe");
  tree_.link(folder + "exe", process.exe);
  tree_.remove(folder + "smaps_rollup");
  if (process.rollup_denied) {
    tree_.link(folder + "smaps_rollup", "smaps_rollup");  // a loop: cannot be opened
  } else {
    tree_.write(folder + "smaps_rollup", rollup_text(process));
  }
  for (const pid_t parent : {process.pid, process.ppid, parent_before}) {
    write_children(parent);
  }
  if (is_new) {
    set_last_pid(last_pid_ + 1);
  }
}

void FakeProc::write_children(pid_t parent) const {
  const auto is_parent = [&](const FakeProcess& process) { return process.pid == parent; };
  if (std::none_of(processes_.begin(), processes_.end(), is_parent)) {
    return;
  }
  std::string children;
  for (const FakeProcess& child : processes_) {
    children += child.ppid == parent ? fmt::format("{} ", child.pid) : "";
  }
  tree_.write(fmt::format("proc/{0}/task/{0}/children", parent), children);
}

void FakeProc::end(pid_t pid) {
  std::erase_if(processes_, [&](const FakeProcess& process) { return process.pid == pid; });
  std::erase_if(source_.table,
                [&](const monitor::ProcessEntry& entry) { return entry.key.pid == pid; });
  tree_.remove(fmt::format("proc/{}", pid));
}

}  // namespace tidemark::tests
