// SPDX-License-Identifier: Apache-2.0
#include "live/last_looks.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/text.h"
#include "common/units.h"
#include "report/last_look_text.h"

namespace tidemark::live {
namespace {

constexpr double kInSightS = 600.0;
constexpr std::size_t kMostLastLooked = 2;  // processes
constexpr double kLongestLookS = 5.0;
constexpr std::uint64_t kLeastLookBytes = 64 * kMiB;
constexpr std::uint64_t kMostLookBytes = 256 * kMiB;
constexpr std::uint64_t kLookShare = 8;  // it takes no more than such a part of what is left

struct FreeBelow {
  std::uint64_t free_bytes = 0;
  std::uint64_t limit_bytes = 0;
};

FreeBelow below(std::uint64_t limit_bytes, std::uint64_t used_bytes) {
  return {limit_bytes - std::min(limit_bytes, used_bytes), limit_bytes};
}

// Of the machine, and of the control group of the job.
std::vector<FreeBelow> known_limits(const Tick& tick) {
  std::vector<FreeBelow> limits;
  if (!tick.system) {
    return limits;
  }
  const SystemSample& system = *tick.system;
  if (system.total_bytes && system.available_bytes) {
    limits.push_back({*system.available_bytes + system.swap_free_bytes.value_or(0),
                      *system.total_bytes + system.swap_total_bytes.value_or(0)});
  }
  if (system.cgroup_limit_bytes && system.cgroup_used_bytes) {
    limits.push_back(below(*system.cgroup_limit_bytes, *system.cgroup_used_bytes));
  }
  return limits;
}

std::int64_t spare_below(const FreeBelow& limit, const LastLookOptions& options) {
  const std::uint64_t kept = options.keep_free ? options.keep_free(limit.limit_bytes) : 0;
  return static_cast<std::int64_t>(limit.free_bytes) - static_cast<std::int64_t>(kept);
}

// Our memory may count where that of the job does, but for what the user counts: what a look may
// take has to be there twice, or it would bring the end nearer.
bool has_room(const std::vector<FreeBelow>& limits, const LastLookOptions& options,
              std::uint64_t most_bytes) {
  return std::all_of(limits.begin(), limits.end(), [&](const FreeBelow& limit) {
    return spare_below(limit, options) >= 2 * static_cast<std::int64_t>(most_bytes);
  });
}

// As the first look finds the machine; later ones at the same process need as much.
std::uint64_t bytes_for_looks(const std::vector<FreeBelow>& limits,
                              const LastLookOptions& options) {
  std::uint64_t most = kMostLookBytes;
  for (const FreeBelow& limit : limits) {
    const auto spare = std::max<std::int64_t>(0, spare_below(limit, options));
    most = std::min(most, static_cast<std::uint64_t>(spare) / kLookShare);
  }
  return std::max(most, kLeastLookBytes);
}

std::uint64_t held_in(const Tick& tick) {
  return tick.tree.footprint_bytes.value_or(tick.tree.rss_bytes);
}

std::optional<LimitSight> sight_of(const Tick& tick, std::vector<FreeBelow> limits,
                                   const LastLookOptions& options,
                                   std::optional<double> leak_bytes_per_s) {
  LimitSight sight;
  sight.held_bytes = held_in(tick);
  if (options.limit_bytes) {
    limits.push_back(below(*options.limit_bytes, sight.held_bytes));
  }
  std::optional<std::int64_t> least;
  for (const FreeBelow& limit : limits) {
    const std::int64_t spare = spare_below(limit, options);
    least = std::min(least.value_or(spare), spare);
  }
  if (!least) {
    return std::nullopt;
  }
  sight.spare_bytes = *least;
  if (leak_bytes_per_s && *leak_bytes_per_s > 0.0) {
    sight.seconds_left = static_cast<double>(*least) / *leak_bytes_per_s;
  }
  return sight;
}

}  // namespace

bool LastLookPlan::is_due(const LimitSight& sight) const {
  if (sight.spare_bytes <= 0) {
    return false;  // it is being stopped, or memory is at its end
  }
  const bool is_soon = sight.seconds_left && *sight.seconds_left <= kInSightS;
  if (!last_) {
    return is_soon || sight.held_bytes >= static_cast<std::uint64_t>(sight.spare_bytes);
  }
  return 2 * sight.spare_bytes <= last_->spare_bytes ||
         (is_soon && (!last_->seconds_left || 2.0 * *sight.seconds_left <= *last_->seconds_left));
}

heap::HeapOptions last_look_budget(std::uint64_t most_memory_bytes) {
  heap::HeapOptions options;
  options.only_reads = true;
  options.most_seconds = kLongestLookS;
  options.most_memory_bytes = most_memory_bytes;
  return options;
}

LastLooks::LastLooks(LastLookOptions options, MakeLook make_look)
    : options_(std::move(options)),
      make_look_(make_look ? std::move(make_look) : looks_of_this_machine()),
      targets_({options_.named, /*all=*/false, kMostLastLooked}),
      thread_(std::make_unique<HeapLookThread>(make_look_)) {}

// Called by the thread that looks, in a round that this one has begun.
MakeLook LastLooks::looks_of_this_machine() {
  return [this](const ProcessKey& key, std::function<bool()> is_cancelled) {
    return make_heap_looks(last_look_budget(look_bytes_.value_or(kLeastLookBytes)))(
        key, std::move(is_cancelled));
  };
}

void LastLooks::tell(const ProcessKey& key, const std::string& why) {
  if (!std::exchange(has_told_, true)) {
    note_ = fmt::format("note: no look at what holds the memory of pid {}: {}", key.pid,
                        escape_text(why));
  }
}

void LastLooks::skip(const ProcessKey& key, const std::string& why) {
  targets_.set_failed(key);
  tell(key, why);
}

void LastLooks::take_news(Tick& tick) {
  HeapLookThread::News news = thread_->take();
  tick.heap = rest_ ? *std::exchange(rest_, std::nullopt) : std::move(news.facts);
  for (const HeapLookThread::Failure& failure : news.failures) {
    if (failure.error.code != Errc::kGone) {
      skip(failure.key, failure.error.what);
    }
  }
  for (const HeapFacts::OfProcess& of : tick.heap.looks) {
    if (of.look.objects == 0 && !of.look.problem.empty()) {
      skip(of.look.key, of.look.problem);
    } else if (of.look.is_partial) {
      tell(of.look.key,
           fmt::format("not all of its objects were reached in {:.0f} s and {}", kLongestLookS,
                       format_bytes(look_bytes_.value_or(kLeastLookBytes))));
    }
  }
}

bool LastLooks::is_job_gone(const Tick& tick) const {
  return !looked_.empty() &&
         std::none_of(tick.processes.begin(), tick.processes.end(), [&](const auto& sample) {
           return std::find(looked_.begin(), looked_.end(), sample.key) != looked_.end();
         });
}

void LastLooks::add_to_tick(Tick& tick, std::optional<double> leak_bytes_per_s) {
  if (!options_.is_on) {
    return;
  }
  targets_.add(tick);
  const bool was_busy = thread_->is_busy();  // what it has found by now is taken below
  take_news(tick);
  if (was_busy || is_given_up_) {
    return;
  }
  if (is_job_gone(tick)) {
    plan_.reset();
    looked_.clear();
  }
  std::vector<FreeBelow> limits = known_limits(tick);
  const std::uint64_t most_bytes = look_bytes_.value_or(bytes_for_looks(limits, options_));
  const bool is_cheap = has_room(limits, options_, most_bytes);
  const auto sight = sight_of(tick, std::move(limits), options_, leak_bytes_per_s);
  if (!sight || !is_cheap || !plan_.is_due(*sight)) {
    return;
  }
  HeapLookThread::Round round;
  round.t_s = tick.t_s;
  round.step = tick.step;
  round.targets = targets_.of(tick);
  if (round.targets.empty()) {
    return;
  }
  looked_.clear();
  for (const HeapLookThread::Target& target : round.targets) {
    looked_.push_back(target.key);
  }
  plan_.begun(*sight);
  look_bytes_ = most_bytes;
  thread_->begin(std::move(round));
}

void LastLooks::give_up() {
  is_given_up_ = true;
  thread_->give_up();
}

// The owners of a process are numbered by the thread that looks at it: another one must not.
void LastLooks::begin_again() {
  if (!std::exchange(is_given_up_, false)) {
    return;
  }
  for (const tracker::LookedProcess& process : owners_.owners().processes) {
    targets_.set_failed(process.key);
  }
  looked_.clear();
  plan_.reset();
  thread_ = std::make_unique<HeapLookThread>(make_look_);
}

bool LastLooks::end() {
  is_given_up_ = true;
  thread_->cancel();
  HeapFacts facts = thread_->take().facts;
  if (facts.empty()) {
    return false;
  }
  rest_ = std::move(facts);
  return true;
}

std::string LastLooks::held_by() const {
  const auto report = report::make_last_look(owners_.owners(), options_.judge);
  return report ? report::held_by_text(report->last) : "";
}

std::string LastLooks::report() const {
  const auto report = report::make_last_look(owners_.owners(), options_.judge);
  return report ? report::last_look_text(report->last) : "";
}

}  // namespace tidemark::live
