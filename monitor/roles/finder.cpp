// SPDX-License-Identifier: Apache-2.0
#include "monitor/roles/finder.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "common/redact.h"
#include "common/text.h"
#include "common/units.h"
#include "monitor/roles/command.h"
#include "monitor/roles/roles.h"

namespace tidemark::monitor {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);
constexpr std::uint64_t kBigBytes = 100 * kMiB;
constexpr std::uint64_t kMuchGpuBytes = 256 * kMiB;  // more than a desktop program takes
constexpr double kLongCpuSeconds = 60;
constexpr std::size_t kArgvColumns = 80;
constexpr std::size_t kMostShown = 10;

struct WorkerCounts {
  std::size_t compile_workers = 0;
  std::size_t dataloader_workers = 0;
  std::size_t named = 0;  // of both: recognised by a name, not by a guess
};

// What the evidence says about one process.
struct Assessment {
  Confidence confidence = Confidence::kWeak;
  int score = 0;                     // orders candidates of the same confidence
  std::vector<std::string> reasons;  // the strongest first
};

// Points are compared between candidates only; the tiers of Confidence come first.
void add(Assessment& assessment, int points, std::string reason) {
  assessment.score += points;
  assessment.reasons.push_back(std::move(reason));
}

std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{} below it", count, what, count == 1 ? "" : "s");
}

double cpu_seconds(const ProcessFacts& facts) {
  static const long kTicksPerSecond = ::sysconf(_SC_CLK_TCK);
  return static_cast<double>(facts.cpu_ticks) / static_cast<double>(kTicksPerSecond);
}

void add_workers(Assessment& assessment, const WorkerCounts& workers, bool framework) {
  if (workers.named == 0 && !framework) {
    return;  // the pool of any Python program
  }
  if (workers.compile_workers > 0) {
    add(assessment, 40, counted(workers.compile_workers, "compile worker"));
  }
  if (workers.dataloader_workers > 0) {
    add(assessment, 40, counted(workers.dataloader_workers, "DataLoader worker"));
  }
}

void add_gpu(Assessment& assessment, const ProcessEvidence& evidence) {
  if (evidence.gpu_bytes.value_or(0) > 0) {
    add(assessment, 25, fmt::format("holds {} of GPU memory", format_bytes(*evidence.gpu_bytes)));
  } else if (!evidence.gpu_device.empty()) {
    add(assessment, 15, fmt::format("has {} open", escape_text(evidence.gpu_device)));
  } else if (!evidence.libraries.gpu.empty()) {
    add(assessment, 5, fmt::format("maps {}", escape_text(evidence.libraries.gpu)));
  }
}

void add_size(Assessment& assessment, const ProcessFacts& facts) {
  const std::uint64_t bytes = facts.footprint_bytes;
  if (bytes >= kBigBytes) {
    const int points = bytes >= 10 * kGiB ? 8 : bytes >= kGiB ? 5 : 2;
    add(assessment, points, fmt::format("footprint {}", format_bytes(bytes)));
  }
  if (const double seconds = cpu_seconds(facts); seconds >= kLongCpuSeconds) {
    add(assessment, seconds >= 3600 ? 5 : 3,
        fmt::format("has used {} of CPU time", format_duration(seconds)));
  }
}

Confidence confidence_of(const ProcessEvidence& evidence, const RoleAssignment& role,
                         const WorkerCounts& workers, const TrainingWords& words, bool python) {
  const bool framework = !evidence.libraries.framework.empty();
  const bool named = !words.name.empty() || !words.argument.empty();
  const bool on_gpu = evidence.gpu_bytes.value_or(0) > 0 || !evidence.gpu_device.empty();
  const bool several_ranks = role.role == Role::kRank && !role.inferred;
  if (workers.named > 0 || several_ranks ||
      (framework && (named || on_gpu || role.rank || role.role == Role::kRank))) {
    return Confidence::kCertain;
  }
  const bool big_enough = python || evidence.facts.footprint_bytes >= kBigBytes;
  if (framework || evidence.gpu_bytes.value_or(0) >= kMuchGpuBytes ||
      (!words.name.empty() && big_enough)) {
    return Confidence::kLikely;
  }
  return Confidence::kWeak;
}

Assessment assess(const ProcessEvidence& evidence, const RoleAssignment& role,
                  const WorkerCounts& workers) {
  const Command command = parse_command(evidence.facts.argv);
  const TrainingWords words = training_words(command);
  const bool framework = !evidence.libraries.framework.empty();
  Assessment assessment;
  assessment.confidence = confidence_of(evidence, role, workers, words, command.python);
  if (framework) {
    add(assessment, 40, fmt::format("maps {}", escape_text(evidence.libraries.framework)));
  }
  add_workers(assessment, workers, framework);
  add_gpu(assessment, evidence);
  if (role.rank) {
    add(assessment, 20, fmt::format("its rank is {}", *role.rank));
  } else if (!evidence.job_variables.empty()) {
    add(assessment, 10, fmt::format("{} is set", evidence.job_variables.front()));
  }
  if (!words.name.empty()) {
    add(assessment, 20, fmt::format("named like training: {}", escape_text(words.name)));
  }
  if (!words.argument.empty()) {
    add(assessment, 5, fmt::format("has the argument {}", escape_text(words.argument)));
  }
  if (command.python) {
    add(assessment, 5, "runs python");
  }
  add_size(assessment, evidence.facts);
  return assessment;
}

// Small scripts and programs without any sign of training are not even weak candidates.
bool is_worth_showing(const ProcessEvidence& evidence, Confidence confidence) {
  return confidence > Confidence::kWeak ||
         (parse_command(evidence.facts.argv).python && evidence.facts.footprint_bytes >= kBigBytes);
}

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

// What a server has started: one job, or several processes that look equally like training, of
// which the server is the way to see all.
Candidate join_server(pid_t server, std::vector<Candidate> jobs) {
  const auto best =
      std::max_element(jobs.begin(), jobs.end(), [](const Candidate& a, const Candidate& b) {
        return std::pair(a.confidence, a.score) < std::pair(b.confidence, b.score);
      });
  Candidate joined = *best;
  if (jobs.size() > 1) {
    joined.footprint_bytes = 0;
    for (const Candidate& job : jobs) {
      joined.footprint_bytes += job.footprint_bytes;
    }
    joined.watch = {server};
    joined.reasons.insert(joined.reasons.begin(),
                          fmt::format("one of {} processes of the server {}", jobs.size(), server));
  }
  return joined;
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
  std::map<std::size_t, std::vector<Candidate>> by_server;
  for (auto& [i, candidate] : admitted) {
    if (!dropped[i]) {
      by_server[tree.above(i, [&](std::size_t up) {
        return tree.role(up).role == Role::kLauncher;
      })].push_back(std::move(candidate));
    }
  }
  for (auto& [server, jobs] : by_server) {
    if (server == kNone) {
      std::move(jobs.begin(), jobs.end(), std::back_inserter(candidates));
    } else {
      candidates.push_back(join_server(tree.pid(server), std::move(jobs)));
    }
  }
}

std::vector<Orphan> find_orphans(const std::vector<ProcessFacts>& facts) {
  std::vector<Orphan> orphans;
  for (const std::size_t i : orphaned_workers(facts)) {
    const Role role = assign_roles(std::span(&facts[i], 1)).front().role;
    orphans.push_back({facts[i].key, role, facts[i].argv, facts[i].footprint_bytes});
  }
  std::sort(orphans.begin(), orphans.end(), [](const Orphan& a, const Orphan& b) {
    return std::pair(b.footprint_bytes, a.key) < std::pair(a.footprint_bytes, b.key);
  });
  return orphans;
}

// What to give to --pid for each candidate of this confidence, and what it is.
std::vector<std::string> choices(const FindResult& result, Confidence confidence) {
  std::vector<std::string> lines;
  std::size_t left_off = 0;
  for (const Candidate& candidate : result.candidates) {
    if (candidate.confidence != confidence) {
      continue;
    }
    if (lines.size() == kMostShown) {
      ++left_off;
      continue;
    }
    std::string line;
    for (const pid_t pid : candidate.watch) {
      line += fmt::format("--pid {} ", pid);
    }
    lines.push_back(line +
                    fmt::format("({}, {})",
                                shorten(escape_text(redact_argv(candidate.argv)), kArgvColumns),
                                format_bytes(candidate.footprint_bytes)));
  }
  if (left_off > 0) {
    lines.push_back(fmt::format("and {} more", left_off));
  }
  return lines;
}

std::string permission_note(const FindResult& result) {
  return result.not_permitted == 0
             ? ""
             : fmt::format(" ({} more could not be read for lack of permission)",
                           result.not_permitted);
}

// Before the hint that follows: root may read what we may not.
std::string sudo_hint(const FindResult& result) {
  return result.not_permitted > 0 && !result.is_root
             ? "if the job is another user's: sudo tidemark find; else "
             : "";
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
  result.orphans = find_orphans(facts);
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

std::string NoPick::one_line() const {
  std::string text = what;
  for (const std::string& detail : details) {
    text += (text.size() == what.size() ? ": " : "; ") + detail;
  }
  return text;
}

NoPick explain_no_pick(const FindResult& result) {
  if (result.candidates.empty()) {
    return {
        fmt::format("found no training process among {}{}",
                    format_count(result.processes, "process", "processes"),
                    permission_note(result)),
        {"looked for libtorch, TensorFlow or JAX in memory", "GPU devices and GPU memory in use",
         "compile and DataLoader workers", "RANK, LOCAL_RANK or WORLD_SIZE",
         "python with a name or arguments like those of a training script"},
        sudo_hint(result) +
            "name the process with --pid, or start it as `tidemark monitor -- COMMAND`"};
  }
  const Candidate& first = result.candidates.front();
  if (first.confidence == Confidence::kWeak) {
    return {fmt::format("no process shows more than weak signs of training{}; the big pythons are",
                        permission_note(result)),
            choices(result, first.confidence),
            sudo_hint(result) + fmt::format("if one of them is the job, name it: tidemark track "
                                            "--pid {}",
                                            first.watch.front())};
  }
  return {"several jobs look equally like training", choices(result, first.confidence),
          fmt::format("choose one, for example: tidemark monitor --pid {}", first.watch.front())};
}

}  // namespace tidemark::monitor
