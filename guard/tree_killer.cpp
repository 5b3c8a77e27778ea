// SPDX-License-Identifier: Apache-2.0
#include "guard/tree_killer.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/launch_mark.h"
#include "monitor/procfs/proc_files.h"
#include "monitor/procfs/process_signal.h"

namespace tidemark::guard {
namespace {

constexpr std::uint32_t kMostWalks = 100;  // to find everybody: a bomb's generation each
constexpr std::uint32_t kMostRounds = 20;  // of stopping and killing
constexpr std::size_t kLongestGroupText = std::size_t{64} << 10U;  // some 8,000 processes
constexpr pid_t kInit = 1;
constexpr pid_t kThreadDaemon = 2;

std::size_t slot_of(pid_t pid, std::size_t slots) {
  constexpr std::uint32_t kGolden = 0x9E3779B9;
  const std::uint32_t mixed = static_cast<std::uint32_t>(pid) * kGolden;
  return mixed & (slots - 1);
}

}  // namespace

Result<TreeKiller> TreeKiller::open(const Options& options) {
  TreeKiller killer;
  killer.options_ = options;
  auto proc = open_file(options.proc_root, O_RDONLY | O_DIRECTORY);
  if (!proc) {
    return proc.error();
  }
  killer.proc_ = *std::move(proc);
  const std::size_t slots = std::bit_ceil(2 * options.most_processes);
  killer.rows_.resize(options.most_processes);
  killer.row_index_.resize(slots);
  killer.members_.resize(slots);
  killer.entries_.resize(std::size_t{32} << 10U);
  killer.group_text_.resize(kLongestGroupText);
  return killer;
}

std::vector<TreeKiller::Region> TreeKiller::regions() const {
  return {{rows_.data(), rows_.size() * sizeof(Row)},
          {row_index_.data(), row_index_.size() * sizeof(std::uint32_t)},
          {members_.data(), members_.size() * sizeof(Member)},
          {entries_.data(), entries_.size()},
          {group_text_.data(), group_text_.size()}};
}

TreeKiller::Row* TreeKiller::row_of(pid_t pid) {
  return const_cast<Row*>(std::as_const(*this).row_of(pid));
}

const TreeKiller::Row* TreeKiller::row_of(pid_t pid) const {
  for (std::size_t slot = slot_of(pid, row_index_.size()); row_index_[slot] != 0;
       slot = (slot + 1) & (row_index_.size() - 1)) {
    const Row& row = rows_[row_index_[slot] - 1];
    if (row.key.pid == pid) {
      return &row;
    }
  }
  return nullptr;
}

const TreeKiller::Member* TreeKiller::member_with_pid(pid_t pid) const {
  for (std::size_t slot = slot_of(pid, members_.size()); members_[slot].key.pid != 0;
       slot = (slot + 1) & (members_.size() - 1)) {
    if (members_[slot].key.pid == pid) {
      return &members_[slot];
    }
  }
  return nullptr;
}

TreeKiller::Member* TreeKiller::member_of(const ProcessKey& key) {
  for (std::size_t slot = slot_of(key.pid, members_.size()); members_[slot].key.pid != 0;
       slot = (slot + 1) & (members_.size() - 1)) {
    if (members_[slot].key == key) {
      return &members_[slot];
    }
  }
  return nullptr;
}

// nullptr when the table is full: whoever is left out comes in the next round.
TreeKiller::Member* TreeKiller::add_member(const ProcessKey& key) {
  if (Member* known = member_of(key)) {
    return known;
  }
  if (member_count_ + 1 > members_.size() / 2) {
    return nullptr;
  }
  std::size_t slot = slot_of(key.pid, members_.size());
  while (members_[slot].key.pid != 0) {
    slot = (slot + 1) & (members_.size() - 1);
  }
  members_[slot] = Member{key};
  ++member_count_;
  return &members_[slot];
}

void TreeKiller::begin(std::span<const ProcessKey> members) {
  find_own();
  std::fill(members_.begin(), members_.end(), Member{});
  member_count_ = 0;
  for (const ProcessKey& key : members) {
    add_member(key);
  }
}

void TreeKiller::add_row(pid_t pid) {
  const auto stat = monitor::read_stat(proc_.get(), pid);
  if (!stat || row_count_ == rows_.size()) {
    return;
  }
  rows_[row_count_] = {{pid, stat->start_ticks},  stat->ppid,
                       stat->process_group,       stat->session,
                       monitor::has_ended(*stat), Belongs::kUnknown};
  std::size_t slot = slot_of(pid, row_index_.size());
  while (row_index_[slot] != 0) {
    slot = (slot + 1) & (row_index_.size() - 1);
  }
  row_index_[slot] = static_cast<std::uint32_t>(++row_count_);
}

// All processes of the machine, and which of them belong to the tree.
void TreeKiller::walk() {
  std::fill(row_index_.begin(), row_index_.end(), 0);
  row_count_ = 0;
  ::lseek(proc_.get(), 0, SEEK_SET);
  while (true) {
    const long size = ::syscall(SYS_getdents64, proc_.get(), entries_.data(), entries_.size());
    if (size <= 0) {
      break;
    }
    for (long at = 0; at < size;) {
      dirent64 entry{};
      constexpr std::size_t kHead = offsetof(dirent64, d_name);
      std::memcpy(&entry, entries_.data() + at, kHead);
      const std::string_view name(entries_.data() + at + kHead);
      if (const auto pid = parse_number<pid_t>(name)) {
        add_row(*pid);
      }
      at += entry.d_reclen;
    }
  }
  for (std::size_t i = 0; i < row_count_; ++i) {
    if (decide(rows_[i])) {
      add_member(rows_[i].key);
    }
  }
}

// This process and everybody above it, and the kernel's own.
void TreeKiller::find_own() {
  own_count_ = 0;
  for (const pid_t pid : {kInit, kThreadDaemon}) {
    own_[own_count_++] = pid;
  }
  pid_t pid = ::getpid();
  while (pid > kInit && own_count_ < own_.size()) {
    own_[own_count_++] = pid;
    const auto row = monitor::read_stat(proc_.get(), pid);
    pid = row ? row->ppid : 0;
  }
}

bool TreeKiller::is_own(pid_t pid) const {
  return std::find(own_.begin(), own_.begin() + static_cast<std::ptrdiff_t>(own_count_), pid) !=
         own_.begin() + static_cast<std::ptrdiff_t>(own_count_);
}

// The kernel hands out no pid that still names a group: it is the member's own, unless another
// process has come to that pid since the group ended.
bool TreeKiller::is_led_by_a_member(pid_t leader) const {
  const Member* member = member_with_pid(leader);
  if (member == nullptr) {
    return false;
  }
  const Row* alive = row_of(leader);
  return !is_own(leader) && (alive == nullptr || alive->key == member->key);
}

bool TreeKiller::is_adopted(const Row& row) const {
  return options_.children_of && row.ppid == *options_.children_of &&
         monitor::has_launch_mark(proc_.get(), row.key.pid, options_.launch_mark);
}

// Follows the parents up; everybody on the way gets the same answer. A chain of pids that was read
// in pieces may hold a cycle.
bool TreeKiller::decide(Row& row) {
  Row* at = &row;
  Belongs answer = Belongs::kNo;
  std::size_t steps = 0;
  while (true) {
    if (at->belongs != Belongs::kUnknown || is_own(at->key.pid)) {
      answer = at->belongs == Belongs::kYes ? Belongs::kYes : Belongs::kNo;
      break;
    }
    if (member_of(at->key) != nullptr || is_led_by_a_member(at->group) ||
        is_led_by_a_member(at->session) || is_adopted(*at)) {
      answer = Belongs::kYes;
      break;
    }
    Row* const parent = row_of(at->ppid);
    const bool is_parent = parent != nullptr && parent->key.start_ticks <= at->key.start_ticks;
    if (!is_parent || ++steps > row_count_) {
      break;
    }
    at = parent;
  }
  Row* const end = at;
  for (at = &row; at != end; at = row_of(at->ppid)) {
    at->belongs = answer;
  }
  end->belongs = answer;
  return answer == Belongs::kYes;
}

int TreeKiller::stop(const ProcessKey& key) {
  if (options_.resume != nullptr) {
    options_.resume->will_stop(key);
  }
  return monitor::signal_process(proc_.get(), key, SIGSTOP);
}

// False when there are none.
bool TreeKiller::stop_newcomers(Outcome& outcome) {
  bool found = false;
  for (std::size_t i = 0; i < row_count_; ++i) {
    const Row& row = rows_[i];
    if (row.belongs != Belongs::kYes || row.has_ended) {
      continue;
    }
    Member* const member = member_of(row.key);
    if (member == nullptr || member->is_stopped) {
      continue;
    }
    member->is_stopped = true;
    found = true;
    const int error = stop(row.key);
    if (error != 0 && error != ESRCH) {
      member->is_refused = true;
      ++outcome.refused;
    }
  }
  return found;
}

void TreeKiller::kill_members(Outcome& outcome) {
  outcome.left = 0;
  for (std::size_t i = 0; i < row_count_; ++i) {
    const Row& row = rows_[i];
    if (row.belongs != Belongs::kYes || row.has_ended) {
      continue;
    }
    Member* const member = member_of(row.key);
    if (member == nullptr || member->is_refused) {
      ++outcome.left;
      continue;
    }
    if (monitor::signal_process(proc_.get(), row.key, SIGKILL) == 0) {
      outcome.killed += member->is_killed ? 0U : 1U;
      member->is_killed = true;
      ++outcome.left;
    }
  }
}

TreeKiller::Outcome TreeKiller::kill(std::span<const ProcessKey> members) {
  Outcome outcome;
  begin(members);
  // The known ones at once: they hold the memory.
  for (const ProcessKey& key : members) {
    if (!is_own(key.pid)) {
      stop(key);
    }
  }
  for (std::uint32_t round = 0; round < kMostRounds; ++round) {
    const std::uint32_t killed_before = outcome.killed;
    do {
      walk();
      ++outcome.walks;
    } while (stop_newcomers(outcome) && outcome.walks < kMostWalks);
    kill_members(outcome);
    if (outcome.killed == killed_before) {
      break;
    }
    // Who was born to somebody that was not stopped yet: one more walk tells.
    walk();
    ++outcome.walks;
    if (!stop_newcomers(outcome)) {
      break;
    }
  }
  if (options_.resume != nullptr) {
    options_.resume->forget_all();
  }
  return outcome;
}

bool TreeKiller::owns_group(const Fd& procs, std::span<const ProcessKey> members) {
  // First the group, then everybody: who is in the list and not in the table has ended meanwhile.
  const ssize_t size = ::pread(procs.get(), group_text_.data(), group_text_.size(), 0);
  if (size <= 0 || static_cast<std::size_t>(size) == group_text_.size()) {
    return false;
  }
  begin(members);
  walk();
  std::string_view rest(group_text_.data(), static_cast<std::size_t>(size));
  while (const auto line = next_line(rest)) {
    const auto pid = parse_number<pid_t>(*line);
    const Row* const row = pid ? row_of(*pid) : nullptr;
    if (!pid || *pid == 0 || (row != nullptr && row->belongs != Belongs::kYes)) {
      return false;
    }
  }
  return true;
}

std::uint32_t TreeKiller::count(std::span<const ProcessKey> members) {
  begin(members);
  walk();
  std::uint32_t running = 0;
  for (std::size_t i = 0; i < row_count_; ++i) {
    running += rows_[i].belongs == Belongs::kYes && !rows_[i].has_ended ? 1U : 0U;
  }
  return running;
}

}  // namespace tidemark::guard
