// SPDX-License-Identifier: Apache-2.0
#include "monitor/roles/finder.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "monitor/roles/candidate_score.h"
#include "monitor/roles/roles.h"

namespace tidemark::monitor {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// One job tree of the machine, with the roles of its members.
class JobTree {
 public:
  JobTree(const Evidence& evidence, const std::vector<std::size_t>& members) {
    std::vector<ProcessFacts> facts;
    std::unordered_map<pid_t, std::size_t> by_pid;
    for (const std::size_t i : members) {
      by_pid.emplace(evidence.processes[i].facts.key.pid, evidence_.size());
      evidence_.push_back(&evidence.processes[i]);
      facts.push_back(evidence.processes[i].facts);
    }
    roles_ = assign_roles(facts);
    for (const ProcessFacts& one : facts) {
      const auto parent = by_pid.find(one.ppid);
      parents_.push_back(parent == by_pid.end() ? kNone : parent->second);
    }
  }

  std::size_t size() const { return evidence_.size(); }
  const ProcessEvidence& evidence(std::size_t i) const { return *evidence_[i]; }
  const RoleAssignment& role(std::size_t i) const { return roles_[i]; }
  pid_t pid(std::size_t i) const { return evidence_[i]->facts.key.pid; }

  // The nearest ancestor for which `predicate` holds; kNone without one.
  template <typename Predicate>
  std::size_t above(std::size_t i, Predicate&& predicate) const {
    std::size_t steps = 0;
    for (std::size_t up = parents_[i]; up != kNone && steps < size(); up = parents_[up], ++steps) {
      if (predicate(up)) {
        return up;
      }
    }
    return kNone;
  }

 private:
  std::vector<const ProcessEvidence*> evidence_;
  std::vector<RoleAssignment> roles_;
  std::vector<std::size_t> parents_;
};

bool is_job(Role role) { return role == Role::kTrainer || role == Role::kRank; }

// Roles that never are the training process itself.
bool may_be_candidate(Role role) {
  return is_job(role) || role == Role::kOther || role == Role::kRay;
}

// The workers below each of `processes`.
std::vector<WorkerCounts> count_workers(const JobTree& tree,
                                        const std::vector<std::size_t>& processes) {
  std::vector<std::size_t> place(tree.size(), kNone);
  for (std::size_t at = 0; at < processes.size(); ++at) {
    place[processes[at]] = at;
  }
  std::vector<WorkerCounts> counts(processes.size());
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const RoleAssignment& role = tree.role(i);
    if (role.role != Role::kCompileWorker && role.role != Role::kDataloaderWorker) {
      continue;
    }
    const std::size_t owner = tree.above(i, [&](std::size_t up) { return place[up] != kNone; });
    if (owner == kNone) {
      continue;
    }
    WorkerCounts& own = counts[place[owner]];
    ++(role.role == Role::kCompileWorker ? own.compile_workers : own.dataloader_workers);
    own.named += role.inferred ? 0U : 1U;
  }
  return counts;
}

Candidate make_candidate(const JobTree& tree, std::size_t i, const WorkerCounts& workers) {
  const ProcessEvidence& evidence = tree.evidence(i);
  Assessment assessment = assess(evidence, tree.role(i), workers);
  Candidate candidate;
  candidate.key = evidence.facts.key;
  candidate.role = tree.role(i).role == Role::kOther ? Role::kTrainer : tree.role(i).role;
  candidate.confidence = assessment.confidence;
  candidate.score = assessment.score;
  candidate.argv = evidence.facts.argv;
  candidate.footprint_bytes = evidence.facts.footprint_bytes;
  candidate.compile_workers = workers.compile_workers;
  candidate.dataloader_workers = workers.dataloader_workers;
  candidate.watch = {candidate.key.pid};
  candidate.reasons = std::move(assessment.reasons);
  tree.above(i, [&](std::size_t up) {
    const Role role = tree.role(up).role;
    if (tree.pid(up) != 1 && (role == Role::kWrapper || role == Role::kLauncher)) {
      candidate.wrappers.push_back(tree.pid(up));
    }
    return false;
  });
  return candidate;
}

// Joins the ranks of one job, given in the order of their ranks.
Candidate join_ranks(const JobTree& tree, const std::vector<std::size_t>& ranks,
                     std::size_t launcher, std::vector<Candidate> singles) {
  Candidate job = singles.front();
  job.watch.clear();
  for (std::size_t at = 0; at < ranks.size(); ++at) {
    job.ranks.push_back({tree.pid(ranks[at]), tree.role(ranks[at]).rank});
    const bool below_another = tree.above(ranks[at], [&](std::size_t up) {
      return std::find(ranks.begin(), ranks.end(), up) != ranks.end();
    }) != kNone;
    if (!below_another) {
      job.watch.push_back(tree.pid(ranks[at]));
    }
    if (at > 0) {
      job.footprint_bytes += singles[at].footprint_bytes;
      job.compile_workers += singles[at].compile_workers;
      job.dataloader_workers += singles[at].dataloader_workers;
      job.score = std::max(job.score, singles[at].score);
      job.confidence = std::max(job.confidence, singles[at].confidence);
    }
  }
  if (launcher != kNone) {
    job.watch = {tree.pid(launcher)};
  }
  job.reasons.insert(job.reasons.begin(), std::to_string(ranks.size()) + " ranks of one job");
  return job;
}

void add_rank_jobs(const JobTree& tree, std::vector<Candidate>& candidates) {
  std::map<std::size_t, std::vector<std::size_t>> jobs;  // by launcher
  for (std::size_t i = 0; i < tree.size(); ++i) {
    if (tree.role(i).role == Role::kRank) {
      jobs[tree.above(i, [&](std::size_t up) { return tree.role(up).role == Role::kLauncher; })]
          .push_back(i);
    }
  }
  for (auto& [launcher, ranks] : jobs) {
    std::sort(ranks.begin(), ranks.end(), [&](std::size_t a, std::size_t b) {
      return std::tuple(tree.role(a).rank, tree.pid(a)) <
             std::tuple(tree.role(b).rank, tree.pid(b));
    });
    const std::vector<WorkerCounts> workers = count_workers(tree, ranks);
    std::vector<Candidate> singles;
    for (std::size_t at = 0; at < ranks.size(); ++at) {
      singles.push_back(make_candidate(tree, ranks[at], workers[at]));
    }
    candidates.push_back(join_ranks(tree, ranks, launcher, std::move(singles)));
  }
}

// Of two candidates, one below the other, only one is meant: the trainer rather than the server
// that started it, and the trainer rather than the evaluation that it started itself.
bool upper_wins(const JobTree& tree, std::size_t upper, const Candidate& above, std::size_t lower,
                const Candidate& below) {
  return std::pair(above.confidence, is_job(tree.role(upper).role)) >=
         std::pair(below.confidence, is_job(tree.role(lower).role));
}

void add_single_jobs(const JobTree& tree, std::vector<Candidate>& candidates) {
  std::vector<std::size_t> processes;
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const bool in_rank_job = tree.role(i).role == Role::kRank || tree.above(i, [&](std::size_t up) {
      return tree.role(up).role == Role::kRank;
    }) != kNone;
    if (may_be_candidate(tree.role(i).role) && !in_rank_job) {
      processes.push_back(i);
    }
  }
  const std::vector<WorkerCounts> workers = count_workers(tree, processes);
  std::map<std::size_t, Candidate> admitted;
  for (std::size_t at = 0; at < processes.size(); ++at) {
    const std::size_t i = processes[at];
    Candidate candidate = make_candidate(tree, i, workers[at]);
    if (is_worth_showing(tree.evidence(i), candidate.confidence)) {
      admitted.emplace(i, std::move(candidate));
    }
  }
  std::vector<bool> dropped(tree.size(), false);
  for (const auto& [i, candidate] : admitted) {
    tree.above(i, [&, lower = i, &below = candidate](std::size_t upper) {
      if (const auto found = admitted.find(upper); found != admitted.end()) {
        dropped[upper_wins(tree, upper, found->second, lower, below) ? lower : upper] = true;
      }
      return false;
    });
  }
  for (auto& [i, candidate] : admitted) {
    if (!dropped[i]) {
      candidates.push_back(std::move(candidate));
    }
  }
}

}  // namespace

FindResult rank_candidates(const Evidence& evidence) {
  std::vector<ProcessFacts> facts;
  facts.reserve(evidence.processes.size());
  for (const ProcessEvidence& process : evidence.processes) {
    facts.push_back(process.facts);
  }
  FindResult result;
  result.processes = evidence.processes.size();
  result.not_permitted = evidence.not_permitted;
  for (const auto& members : job_trees(facts)) {
    const JobTree tree(evidence, members);
    add_rank_jobs(tree, result.candidates);
    add_single_jobs(tree, result.candidates);
  }
  auto& candidates = result.candidates;
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::tuple(b.confidence, b.score, a.key) < std::tuple(a.confidence, a.score, b.key);
  });
  const bool clear =
      !candidates.empty() && candidates[0].confidence > Confidence::kWeak &&
      (candidates.size() == 1 || candidates[1].confidence < candidates[0].confidence);
  if (clear) {
    result.picked = 0;
  }
  return result;
}

}  // namespace tidemark::monitor
