// SPDX-License-Identifier: Apache-2.0
#include "live/job_looks.h"

#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "common/units.h"
#include "profiler/collect/attached.h"

namespace tidemark::live {
namespace {

template <typename T>
void append_all(std::vector<T>& to, std::vector<T> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

void JobLooks::take_failure(const HeapLookThread::Failure& failure) {
  plan_.set_failed(failure.key);
  if (failure.error.code == Errc::kGone) {
    return;  // it has exited: that is what it is here for
  }
  if (!denial_) {
    denial_ = failure;
  }
  problems_.push_back(fmt::format("pid {}: {}", failure.key.pid, failure.error.what));
}

void JobLooks::take_news(Tick& tick) {
  HeapLookThread::News news = looks_.take();
  looks_taken_ += news.facts.looks.size();
  for (const HeapFacts::OfProcess& of : news.facts.looks) {
    found_objects_ = found_objects_ || of.look.objects > 0 || of.look.problem.empty();
  }
  tick.heap = std::move(news.facts);
  if (blocks_) {
    AllocationFacts facts = blocks_->take_facts();
    append_all(tick.allocations.modules, std::move(facts.modules));
    append_all(tick.allocations.frames, std::move(facts.frames));
    append_all(tick.allocations.sites, std::move(facts.sites));
  }
  for (const HeapLookThread::Failure& failure : news.failures) {
    take_failure(failure);
  }
  for (std::string& problem : news.problems) {
    problems_.push_back(problem);
    export_problems_.push_back(std::move(problem));
  }
}

void JobLooks::complete(Tick& tick) {
  plan_.add(tick);
  const bool was_busy = looks_.is_busy();  // what it has found by now is taken below
  take_news(tick);
  if (was_busy || is_finishing_) {
    return;
  }
  ended_ = plan_.begun();
  if (looks_taken_ == 0 && denial_ && plan_.begun() > 0) {
    is_denied_ = true;
    return;
  }
  // What is no Python now will be none at the next look; a command may still be about to start it.
  const bool is_hopeless = looks_taken_ > 0 && !found_objects_ && !plan_.was_started();
  if (plan_.has_begun_all() || is_hopeless) {
    is_done_ = true;
    return;
  }
  if (plan_.is_due(tick)) {
    HeapLookThread::Round round = plan_.make_round(tick);
    if (!round.targets.empty()) {
      looks_.begin(std::move(round));
    }
  }
}

bool JobLooks::finish() {
  const bool was_busy = looks_.is_busy();
  is_finishing_ = true;
  looks_.cancel();
  return was_busy;
}

std::optional<std::uint64_t> JobLooks::take_ended_look() {
  if (taken_ended_ == ended_) {
    return std::nullopt;
  }
  taken_ended_ = ended_;
  return ended_;
}

std::vector<std::string> JobLooks::notes() const {
  std::vector<std::string> notes = problems_;
  if (plan_.left_out() > 0) {
    notes.push_back(
        fmt::format("{} not looked at; --all looks at up to {}",
                    format_count(plan_.left_out(), "smaller process was", "smaller processes were"),
                    LookPlan::kMostLookedAll));
  }
  return notes;
}

std::vector<std::string> JobLooks::take_export_problems() {
  return std::exchange(export_problems_, {});
}

// What the kernel says is "permission denied"; why is in the files of /proc.
LookDenial denial_text(const HeapLookThread::Failure& failure) {
  LookDenial denial;
  denial.what =
      fmt::format("cannot look at the heap of pid {}: {}", failure.key.pid, failure.error.what);
  if (failure.error.code == Errc::kPermission) {
    denial.hint = collect::attach_hint(failure.error, failure.key.pid);
  }
  return denial;
}

}  // namespace tidemark::live
