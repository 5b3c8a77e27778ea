// SPDX-License-Identifier: Apache-2.0
#include "live/tree_attachment.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "common/units.h"

namespace tidemark::live {
namespace {

constexpr int kMostAttempts = 5;
constexpr std::int64_t kFirstPauseNs = kNsPerSecond / 4;  // doubled after each attempt
// While a tick waits: of one process, and of all.
constexpr std::int64_t kAttemptNs = kNsPerSecond;
constexpr std::int64_t kTickNs = kNsPerSecond;

bool has_exited(const Error& error) {
  return error.code == Errc::kGone || error.code == Errc::kNotFound;
}

}  // namespace

Result<TreeAttachment> TreeAttachment::start(const AttachTargets& targets,
                                             const ProfileOptions& options) {
  std::optional<TreeAttachment> tree;
  std::vector<std::pair<pid_t, Error>> failed;
  std::string late;
  for (const pid_t pid : targets.wanted) {
    const std::int64_t begun_ns = SystemClock().monotonic_ns();
    Status added = ok();
    if (tree) {
      added = tree->attached_.add(pid, options.attach_timeout_ns);
    } else if (auto first = collect::AttachedProcesses::attach(pid, options.trace,
                                                               options.attach_timeout_ns)) {
      tree.emplace(TreeAttachment(*std::move(first), options));
    } else {
      added = first.error();
    }
    if (!added) {
      failed.emplace_back(pid, added.error());
      if (added.error().sys_errno == EINTR) {
        break;
      }
      continue;
    }
    const collect::AttachedProcesses& attached = tree->attached_;
    if (!attached.problem().empty()) {
      tree->note_problem(attached.problem());
    }
    tree->note_success(pid, SystemClock().monotonic_ns() - begun_ns);
    if (attached.was_loaded()) {
      late += fmt::format("{}{}", late.empty() ? "" : ", ", pid);
    }
  }
  if (!failed.empty() && failed.back().second.sys_errno == EINTR) {
    return failed.back().second;
  }
  if (!tree) {
    return failed.front().second;
  }
  if (!late.empty()) {  // first: the dashboard shows the last one
    tree->notes_.insert(
        tree->notes_.begin(),
        fmt::format("what pid {} allocated before now cannot be put down to lines", late));
  }
  for (const auto& [pid, error] : failed) {
    Waiting& waiting = tree->waiting_[pid];
    waiting.attempts = 1;
    waiting.next_ns = tree->clock_.monotonic_ns() + kFirstPauseNs;
    waiting.reason = error.what;
  }
  return *std::move(tree);
}

// Where a tracer should have rested, but is not there: why it is loaded nevertheless.
void TreeAttachment::note_success(pid_t pid, std::int64_t took_ns) {
  if (!attached_.was_loaded()) {
    notes_.push_back(fmt::format("the tracer is in pid {} already, and is woken", pid));
    return;
  }
  if (attached_.had_tracer()) {
    notes_.push_back(
        fmt::format("no tracer rests in pid {} any more: it has started another program since it "
                    "was traced; it is loaded again",
                    pid));
  }
  notes_.push_back(collect::attach_text(pid, attached_.figures(), took_ns));
}

void TreeAttachment::add_tick(const Tick& tick) {
  for (const ProcessRecord& process : tick.new_processes) {
    if (is_wanted(process.role, options_.scope)) {
      waiting_[process.key.pid] = {};  // also when it runs another program by now
    } else {
      attached_.add_if_forked(process.key.pid);
    }
  }
  try_again();
  for (std::string& problem : attached_.hook_new_modules()) {
    note_problem(std::move(problem));
  }
}

void TreeAttachment::try_again() {
  const std::int64_t begun_ns = clock_.monotonic_ns();
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    const auto at = next++;
    Waiting& waiting = at->second;
    const std::int64_t now_ns = clock_.monotonic_ns();
    if (now_ns < waiting.next_ns || now_ns - begun_ns > kTickNs) {
      continue;
    }
    const Status added = attached_.add(at->first, std::min(options_.attach_timeout_ns, kAttemptNs));
    if (added) {
      waiting_.erase(at);
    } else if (has_exited(added.error())) {
      ++exited_;
      waiting_.erase(at);
    } else if (++waiting.attempts >= kMostAttempts) {
      give_up(at->first, added.error().what);
      waiting_.erase(at);
    } else {
      waiting.next_ns = now_ns + (kFirstPauseNs << (waiting.attempts - 1));
      waiting.reason = added.error().what;
    }
  }
}

void TreeAttachment::give_up(pid_t pid, const std::string& reason) {
  note_problem(fmt::format("pid {} is not traced: {}", pid, reason));
}

void TreeAttachment::detach(const std::vector<pid_t>& traced) {
  for (const auto& [pid, waiting] : waiting_) {
    give_up(pid,
            waiting.reason.empty() ? "the run ended before it was attached to" : waiting.reason);
  }
  waiting_.clear();
  if (exited_ > 0) {
    note_problem(fmt::format("{} exited before the tracer was in {}",
                             format_count(exited_, "process", "processes"),
                             exited_ == 1 ? "it" : "them"));
  }
  for (std::string& problem : attached_.detach(traced)) {
    note_problem(std::move(problem));
  }
}

// Each once: what goes wrong every few seconds is the same news.
void TreeAttachment::note_problem(std::string problem) {
  if (std::find(problems_.begin(), problems_.end(), problem) == problems_.end()) {
    problems_.push_back(std::move(problem));
  }
}

std::vector<std::string> TreeAttachment::take_problems() {
  std::vector<std::string> news(problems_.begin() + static_cast<std::ptrdiff_t>(taken_),
                                problems_.end());
  taken_ = problems_.size();
  return news;
}

}  // namespace tidemark::live
