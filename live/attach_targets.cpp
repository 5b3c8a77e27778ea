// SPDX-License-Identifier: Apache-2.0
#include "live/attach_targets.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/redact.h"
#include "common/text.h"
#include "live/find.h"
#include "monitor/roles/command.h"
#include "monitor/roles/finder.h"
#include "monitor/roles/process_evidence.h"

namespace tidemark::live {
namespace {

using monitor::ProcessFacts;

struct TreeMember {
  const ProcessFacts* facts = nullptr;
  Role role = Role::kOther;
  bool runs_others = false;  // a shell, a wrapper, a launcher: not the work itself
};

const ProcessFacts* find_process(std::span<const ProcessFacts> table, pid_t pid) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const ProcessFacts& each) { return each.key.pid == pid; });
  return found == table.end() ? nullptr : &*found;
}

bool is_below(std::span<const ProcessFacts> table, const ProcessFacts& process,
              std::span<const pid_t> roots) {
  const ProcessFacts* at = &process;
  for (std::size_t steps = 0; at != nullptr && steps < table.size(); ++steps) {
    if (std::find(roots.begin(), roots.end(), at->key.pid) != roots.end()) {
      return true;
    }
    at = find_process(table, at->ppid);
  }
  return false;
}

// The processes below `roots` and these themselves, in the order of the table.
std::vector<TreeMember> members_of(std::span<const ProcessFacts> table,
                                   std::span<const pid_t> roots) {
  std::vector<ProcessFacts> tree;
  std::vector<TreeMember> members;
  for (const ProcessFacts& each : table) {
    if (is_below(table, each, roots)) {
      tree.push_back(each);
      members.push_back({&each});
    }
  }
  const std::vector<monitor::RoleAssignment> roles = monitor::assign_roles(tree);
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Role role = roles[i].role;
    members[i].role = role;
    members[i].runs_others = role == Role::kWrapper || role == Role::kLauncher ||
                             monitor::parse_command(tree[i].argv).shell;
  }
  return members;
}

std::string process_text(const ProcessFacts& process) {
  constexpr std::size_t kColumns = 60;
  return fmt::format("pid {} ({})", process.key.pid,
                     shorten(escape_text(redact_argv(process.argv)), kColumns));
}

// Of several processes that a shell runs.
Error choose_one(const ProcessFacts& shell, const std::vector<const TreeMember*>& jobs) {
  constexpr std::size_t kMost = 5;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(jobs.size(), kMost); ++i) {
    names.push_back(process_text(*jobs[i]->facts));
  }
  if (jobs.size() > kMost) {
    names.push_back(fmt::format("{} more", jobs.size() - kMost));
  }
  return {Errc::kUsage,
          fmt::format("{} only runs others: {}", process_text(shell), fmt::join(names, ", "))};
}

Result<std::vector<ProcessFacts>> process_table(monitor::ProcessSource& source) {
  monitor::EvidenceOptions looked_at;
  looked_at.uid = ::geteuid();
  looked_at.self = ::getpid();
  TIDEMARK_TRY_ASSIGN(auto evidence, monitor::collect_evidence(source, looked_at));
  std::vector<ProcessFacts> table;
  table.reserve(evidence.processes.size());
  for (monitor::ProcessEvidence& each : evidence.processes) {
    table.push_back(std::move(each.facts));
  }
  return table;
}

// The training job that a process is a wrapper or a launcher of.
std::optional<pid_t> job_below(const monitor::FindResult& found, pid_t root) {
  for (const monitor::Candidate& job : found.candidates) {
    if (std::find(job.wrappers.begin(), job.wrappers.end(), root) != job.wrappers.end()) {
      return job.key.pid;
    }
  }
  return std::nullopt;
}

void add(std::vector<pid_t>& pids, pid_t pid) {
  if (std::find(pids.begin(), pids.end(), pid) == pids.end()) {
    pids.push_back(pid);
  }
}

bool is_below_another(std::span<const ProcessFacts> table, pid_t pid, std::span<const pid_t> pids) {
  const ProcessFacts* const process = find_process(table, pid);
  return process != nullptr && std::any_of(pids.begin(), pids.end(), [&](pid_t other) {
           return other != pid && is_below(table, *process, std::span(&other, 1));
         });
}

// What to attach to of the processes that the user has named. The job that a wrapper of training
// runs is known to `found`.
Result<std::vector<pid_t>> jobs_of(const monitor::FindResult& found,
                                   std::span<const ProcessFacts> table,
                                   std::span<const pid_t> named) {
  std::vector<pid_t> jobs;
  for (const pid_t pid : named) {
    if (const auto trains = job_below(found, pid)) {
      add(jobs, *trains);
      continue;
    }
    TIDEMARK_TRY_ASSIGN(const auto at_work, processes_at_work(table, pid, named));
    for (const pid_t each : at_work) {
      add(jobs, each);
    }
  }
  // The job before its workers, in whatever order they were named.
  std::stable_partition(jobs.begin(), jobs.end(),
                        [&](pid_t pid) { return !is_below_another(table, pid, jobs); });
  return jobs;
}

}  // namespace

Result<pid_t> process_at_work(std::span<const ProcessFacts> table, pid_t root) {
  const std::vector<TreeMember> members = members_of(table, std::span(&root, 1));
  const auto own = std::find_if(members.begin(), members.end(), [&](const TreeMember& each) {
    return each.facts->key.pid == root;
  });
  if (own == members.end() || !own->runs_others) {
    return root;
  }
  // The highest ones: what they started is theirs.
  std::vector<const TreeMember*> jobs;
  for (const TreeMember& each : members) {
    const ProcessFacts* above = find_process(table, each.facts->ppid);
    const auto parent = std::find_if(members.begin(), members.end(),
                                     [&](const TreeMember& other) { return other.facts == above; });
    if (!each.runs_others && parent != members.end() && parent->runs_others) {
      jobs.push_back(&each);
    }
  }
  if (jobs.size() > 1) {
    return choose_one(*own->facts, jobs);
  }
  return jobs.empty() ? root : jobs.front()->facts->key.pid;
}

Result<std::vector<pid_t>> processes_at_work(std::span<const ProcessFacts> table, pid_t root,
                                             std::span<const pid_t> named) {
  const auto job = process_at_work(table, root);
  if (job) {
    return std::vector<pid_t>{*job};
  }
  const bool is_one_named = std::any_of(named.begin(), named.end(), [&](pid_t pid) {
    const ProcessFacts* const process = find_process(table, pid);
    return pid != root && process != nullptr && is_below(table, *process, std::span(&root, 1));
  });
  return is_one_named ? Result<std::vector<pid_t>>(std::vector<pid_t>()) : job.error();
}

Result<AttachTargets> attach_targets(const TargetOptions& target, const AttachScope& scope,
                                     monitor::ProcessSource& source) {
  TIDEMARK_TRY_ASSIGN(const auto found, look_for_training(source));
  TIDEMARK_TRY_ASSIGN(const auto table, process_table(source));
  AttachTargets targets;
  std::optional<Result<std::vector<pid_t>>> jobs;
  if (target.find_training) {
    if (!found.picked) {
      return Error{Errc::kNotFound, monitor::explain_no_pick(found).one_line()};
    }
    targets.roots = found.candidates[*found.picked].watch;
    jobs = std::vector<pid_t>{found.candidates[*found.picked].key.pid};
  } else {
    targets.roots = target.pids;
    jobs = jobs_of(found, table, target.pids);
  }
  const bool takes_more = scope.all || scope.role.has_value();
  if (*jobs) {
    targets.wanted = **jobs;
  } else if (!takes_more) {
    return jobs->error();
  }
  if (takes_more) {
    for (const TreeMember& each : members_of(table, targets.roots)) {
      if (is_wanted(each.role, scope)) {
        add(targets.wanted, each.facts->key.pid);
      }
    }
  }
  return targets.wanted.empty() ? Result<AttachTargets>(jobs->error())
                                : Result<AttachTargets>(std::move(targets));
}

bool is_wanted(Role role, const AttachScope& scope) {
  return scope.all || role == Role::kRank || (scope.role && role == *scope.role);
}

}  // namespace tidemark::live
