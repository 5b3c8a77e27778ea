// SPDX-License-Identifier: Apache-2.0
#include "recording/import/import_feed.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace tidemark::recording {

Status BadLineCounter::bad(std::uint64_t line_number, std::string_view reason) {
  if (summary_.bad_lines == 0) {
    summary_.first_bad_line = line_number;
    summary_.first_bad_reason = reason;
  }
  ++summary_.bad_lines;
  constexpr std::uint64_t kAlwaysAllowed = 10;
  if (summary_.bad_lines <= std::max(kAlwaysAllowed, summary_.lines / 100)) {
    return ok();
  }
  return Error{Errc::kMalformed,
               fmt::format("{0}: {1} {2}: {3}; {4} of {5} {1}s could not be used (the first: {1} "
                           "{6}, {7})",
                           name_, unit_, line_number, reason, summary_.bad_lines, summary_.lines,
                           summary_.first_bad_line, summary_.first_bad_reason)};
}

std::uint64_t BadLineCounter::take_new() {
  return summary_.bad_lines - std::exchange(reported_, summary_.bad_lines);
}

namespace {

bool is_readable(const ProcessSample& sample) {
  return sample.rss_bytes || sample.pss_bytes || sample.uss_bytes || sample.footprint_bytes();
}

// A sum with an unknown part is unknown.
void add_known(std::optional<std::uint64_t>& sum, const std::optional<std::uint64_t>& part,
               bool is_first) {
  if (is_first) {
    sum = part;
  } else if (sum && part) {
    *sum += *part;
  } else {
    sum.reset();
  }
}

void add_to(GroupSample& sum, const ProcessSample& sample) {
  const bool is_first = sum.processes == 0;
  ++sum.processes;
  sum.rss_bytes += sample.rss_bytes.value_or(0);
  sum.swap_bytes += sample.swap_bytes.value_or(0);
  sum.unreadable += is_readable(sample) ? 0U : 1U;
  add_known(sum.footprint_bytes, sample.footprint_bytes(), is_first);
  add_known(sum.pss_bytes, sample.pss_bytes, is_first);
}

GroupSample& sum_of(std::vector<RoleSample>& roles, Role role) {
  for (RoleSample& candidate : roles) {
    if (candidate.role == role) {
      return candidate.sum;
    }
  }
  roles.push_back({role, {}});
  return roles.back().sum;
}

void clear(Tick& tick) {
  tick.new_processes.clear();
  tick.processes.clear();
  tick.roles.clear();
  tick.markers.clear();
  tick.losses.clear();
}

}  // namespace

Status ImportFeed::start_tick(double t_s, const RunInfo& info) {
  Status status = has_tick_ ? deliver() : sink_.begin(info);
  has_tick_ = true;
  tick_.t_s = t_s;
  return status;
}

void ImportFeed::introduce(ProcessRecord process) {
  process.started_s = tick_.t_s;
  tick_.new_processes.push_back(std::move(process));
}

void ImportFeed::add(const ProcessSample& sample, Role role) {
  tick_.processes.push_back(sample);
  sample_roles_.push_back(role);
}

void ImportFeed::set_epoch(std::int64_t epoch) {
  if (tick_.epoch != epoch) {
    tick_.epoch = epoch;
    tick_.markers.push_back({tick_.t_s, {}, MarkerKind::kEpoch, epoch, {}});
  }
}

void ImportFeed::sum_up() {
  tick_.tree = {};
  for (std::size_t i = 0; i < tick_.processes.size(); ++i) {
    add_to(tick_.tree, tick_.processes[i]);
    add_to(sum_of(tick_.roles, sample_roles_[i]), tick_.processes[i]);
  }
  if (tree_) {
    tick_.tree = *tree_;
  }
  if (!roles_.empty()) {
    tick_.roles = roles_;
  }
  std::sort(tick_.roles.begin(), tick_.roles.end(),
            [](const RoleSample& a, const RoleSample& b) { return a.role < b.role; });
}

Status ImportFeed::deliver() {
  sum_up();
  if (const std::uint64_t bad = bad_lines_.take_new(); bad > 0) {
    tick_.losses.push_back({tick_.t_s, LossKind::kBadLines, bad});
  }
  ++summary_.ticks;
  summary_.samples += tick_.processes.size();
  Status status = sink_.add(tick_);
  clear(tick_);
  sample_roles_.clear();
  tree_.reset();
  roles_.clear();
  return status;
}

Status ImportFeed::finish(const std::string& name) {
  if (!has_tick_) {
    return Error{Errc::kMalformed, fmt::format("{} holds no samples", name)};
  }
  const double end_s = tick_.t_s;
  TIDEMARK_TRY(deliver());
  return sink_.end(end_s);
}

}  // namespace tidemark::recording
