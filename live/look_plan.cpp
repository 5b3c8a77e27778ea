// SPDX-License-Identifier: Apache-2.0
#include "live/look_plan.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tidemark::live {
namespace {

constexpr double kWaitForStepS = 2.0;
constexpr double kWaitForLogS = 10.0;

// The work of a job, not what starts, compiles or looks after it.
bool does_the_work(Role role) {
  return role == Role::kTrainer || role == Role::kRank || role == Role::kDataloaderWorker ||
         role == Role::kInference;
}

}  // namespace

void LookPlan::add(const Tick& tick) {
  for (const ProcessRecord& process : tick.new_processes) {
    roles_[process.key] = process.role;
  }
}

bool LookPlan::is_due(const Tick& tick) const {
  if (has_begun_all()) {
    return false;
  }
  // Where its steps are known, they are counted from the first look on: its log or its markers are
  // read by then.
  if (begun_ == 0 && !options_.was_started) {
    return tick.step.has_value() || tick.t_s >= (options_.has_log ? kWaitForLogS : kWaitForStepS);
  }
  if (begun_ == 0 && options_.load_ns) {
    return tick.t_s >= to_seconds(*options_.load_ns);
  }
  if (options_.every.steps && tick.step && (last_step_ || begun_ == 0)) {
    return *tick.step - last_step_.value_or(0) >= *options_.every.steps;
  }
  return tick.t_s - last_s_ >= to_seconds(options_.every.ns);
}

HeapLookThread::Round LookPlan::make_round(const Tick& tick) {
  HeapLookThread::Round round;
  round.t_s = tick.t_s;
  round.step = tick.step;
  round.targets = targets_in(tick);
  if (round.targets.empty()) {
    return round;
  }
  ++begun_;
  last_s_ = tick.t_s;
  last_step_ = tick.step;
  if (has_begun_all() && !options_.exports.empty()) {
    round.exports = options_.exports;
  }
  return round;
}

bool LookPlan::is_wanted(const ProcessSample& sample, bool has_work) const {
  const auto role = roles_.find(sample.key);
  const auto& named = options_.named;
  const bool is_named = std::find(named.begin(), named.end(), sample.key.pid) != named.end();
  const bool is_work = role != roles_.end() && does_the_work(role->second);
  return !failed_.contains(sample.key) && sample.state != 'Z' && sample.state != 'X' &&
         (options_.all || is_work || is_looked_at(sample.key) ||
          (!has_work && (is_named || role == roles_.end() || role->second == Role::kOther)));
}

// Those of earlier rounds first, as growth takes two looks; then the work of the job before the
// rest, and the largest first.
std::vector<HeapLookThread::Target> LookPlan::targets_in(const Tick& tick) {
  const bool has_work =
      std::any_of(tick.processes.begin(), tick.processes.end(), [&](const ProcessSample& each) {
        const auto role = roles_.find(each.key);
        return role != roles_.end() && does_the_work(role->second);
      });
  std::vector<const ProcessSample*> wanted;
  for (const ProcessSample& sample : tick.processes) {
    if (is_wanted(sample, has_work)) {
      wanted.push_back(&sample);
    }
  }
  const auto rank = [&](const ProcessSample* sample) {
    const auto role = roles_.find(sample->key);
    const bool is_main =
        role != roles_.end() && (role->second == Role::kTrainer || role->second == Role::kRank);
    return std::tuple(is_looked_at(sample->key), is_main, sample->footprint_bytes().value_or(0));
  };
  std::stable_sort(
      wanted.begin(), wanted.end(),
      [&](const ProcessSample* a, const ProcessSample* b) { return rank(a) > rank(b); });
  const std::size_t most = options_.all ? kMostLookedAll : kMostLooked;
  left_out_ = wanted.size() > most ? wanted.size() - most : 0;
  wanted.resize(std::min(wanted.size(), most));
  std::vector<HeapLookThread::Target> targets;
  for (const ProcessSample* sample : wanted) {
    looked_.insert(sample->key);
    targets.push_back({sample->key, sample->footprint_bytes()});
  }
  return targets;
}

}  // namespace tidemark::live
