// SPDX-License-Identifier: Apache-2.0
#include "common/run_summary.h"

#include <algorithm>

#include "common/records.h"

namespace tidemark {

void Course::add(double t_s, std::uint64_t bytes, std::optional<std::int64_t> step) {
  if (!seen) {
    seen = true;
    first_s = t_s;
    first_bytes = bytes;
  }
  if (bytes > peak_bytes || first_s == t_s) {
    peak_bytes = bytes;
    peak_s = t_s;
  }
  last_s = t_s;
  last_bytes = bytes;
  if (step) {
    if (!first_step) {
      first_step = step;
      first_step_bytes = bytes;
    }
    if (last_step != step) {
      last_step = step;
      last_step_bytes = bytes;
    }
  }
}

std::int64_t Course::growth_bytes() const {
  return static_cast<std::int64_t>(last_bytes) - static_cast<std::int64_t>(first_bytes);
}

std::optional<double> Course::growth_bytes_per_s() const {
  if (!(last_s > first_s)) {
    return std::nullopt;
  }
  return static_cast<double>(growth_bytes()) / (last_s - first_s);
}

std::optional<double> Course::growth_bytes_per_step() const {
  if (!first_step || *last_step <= *first_step) {
    return std::nullopt;
  }
  return (static_cast<double>(last_step_bytes) - static_cast<double>(first_step_bytes)) /
         static_cast<double>(*last_step - *first_step);
}

void RunSummary::lose(const LossRecord& loss) {
  const auto same = [&](const LossRecord& known) { return known.what == loss.what; };
  if (const auto it = std::find_if(losses_.begin(), losses_.end(), same); it != losses_.end()) {
    it->count += loss.count;
  } else {
    losses_.push_back(loss);
  }
}

void RunSummary::add(const Tick& tick) {
  ++ticks_;
  last_s_ = tick.t_s;
  worst_late_s_ = std::max(worst_late_s_, tick.late_s);
  for (const EventRecord& event : tick.events) {
    starts_ += event.kind == EventKind::kSpawn && ticks_ > 1 ? 1 : 0;  // not those found at first
    exits_ += event.kind == EventKind::kExit ? 1 : 0;
    oom_kills_ += event.kind == EventKind::kOomKill ? event.count : 0;
  }
  for (const LossRecord& loss : tick.losses) {
    lose(loss);
  }
  const bool has_memory = tick.tree.rss_bytes > 0 || tick.tree.footprint_bytes.value_or(0) > 0;
  if (tick.tree.processes == 0 && !has_memory) {
    return;  // everybody has left: that is the end, not a fall to zero
  }
  has_seen_any_ = true;
  const std::optional<std::int64_t> step =
      tick.step ? std::optional(steps_.add(*tick.step)) : std::nullopt;
  if (tick.tree.footprint_bytes) {
    footprint_.add(tick.t_s, *tick.tree.footprint_bytes, step);
  }
  if (const auto rss_bytes = known_rss_bytes(tick.tree)) {
    rss_.add(tick.t_s, *rss_bytes, step);
  }
  if (tick.tree.pss_bytes) {
    pss_.add(tick.t_s, *tick.tree.pss_bytes, step);
  }
  for (RoleCourse& course : roles_) {
    course.memory.ended = course.memory.seen;
  }
  for (const RoleSample& sample : tick.roles) {
    RoleCourse& course = roles_[static_cast<std::size_t>(sample.role)];
    course.role = sample.role;
    course.memory.ended = false;
    if (!course.memory.seen && sample.sum.footprint_held) {
      continue;  // new processes count nothing until they are measured: that is no start
    }
    course.steady =
        course.steady && (!course.memory.seen || course.most_processes == sample.sum.processes);
    course.most_processes = std::max(course.most_processes, sample.sum.processes);
    // An imported run may have nothing but RSS.
    const auto rss_bytes = known_rss_bytes(sample.sum);
    if (sample.sum.footprint_bytes || rss_bytes) {
      course.memory.add(tick.t_s, sample.sum.footprint_bytes.value_or(rss_bytes.value_or(0)), step);
    }
  }
}

}  // namespace tidemark
