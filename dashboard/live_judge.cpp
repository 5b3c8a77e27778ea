// SPDX-License-Identifier: Apache-2.0
#include "dashboard/live_judge.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "tracker/sites/frame_text.h"
#include "tracker/sites/site_ranking.h"

namespace tidemark::dashboard {
namespace {

bool is_important(Role role) { return role == Role::kTrainer || role == Role::kRank; }

// `site` is one of the call stacks of `line`.
std::string line_text(const tracker::RunSites& run, const tracker::RankedSite& site,
                      const std::string& line) {
  constexpr std::size_t kColumns = 120;
  const std::string text = tracker::headline(tracker::shown_stack(run, site), line, kColumns);
  return text.empty() ? fmt::format("({} without a name)", allocation_kind_name(site.kind)) : text;
}

}  // namespace

// Trainers and ranks; of the others the larger ones, in the order in which they come.
bool LiveJudge::admits(const ProcessSample& sample, double least_bytes) {
  if (admitted_.contains(sample.key)) {
    return true;
  }
  const auto record = waiting_.find(sample.key);
  if (record == waiting_.end() || !is_important(record->second.role)) {
    const auto bytes = sample.footprint_bytes() ? sample.footprint_bytes() : sample.rss_bytes;
    if (admitted_.size() >= kMostProcesses || !bytes || static_cast<double>(*bytes) < least_bytes) {
      return false;
    }
  }
  admitted_.insert(sample.key);
  return true;
}

void LiveJudge::begin(const RunInfo& info) {
  (void)builder_.begin(info);  // there is no file behind it
  set_limit(info.limit_bytes, info.limit_source);
}

void LiveJudge::set_limit(std::optional<std::uint64_t> bytes, std::string source) {
  limit_bytes_ = bytes ? std::optional(static_cast<double>(*bytes)) : std::nullopt;
  limit_source_ = std::move(source);
}

tracker::RunTracks LiveJudge::tracks() const {
  tracker::RunTracks tracks = builder_.tracks();
  tracks.limit_bytes = limit_bytes_;
  tracks.limit_source = limit_source_;
  return tracks;
}

void LiveJudge::add(const Tick& tick) {
  constexpr double kLeastShare = 0.005;  // of the tree
  Tick taken = tick;
  taken.new_processes.clear();
  for (const ProcessRecord& process : tick.new_processes) {
    if (admitted_.contains(process.key)) {
      taken.new_processes.push_back(process);  // another program in a known process
    } else {
      waiting_[process.key] = process;
    }
  }
  const auto tree_bytes =
      static_cast<double>(tick.tree.footprint_bytes.value_or(tick.tree.rss_bytes));
  const bool all_fit = tick.processes.size() <= kMostProcesses;
  std::erase_if(taken.processes, [&](const ProcessSample& sample) {
    return !admits(sample, all_fit ? 0.0 : kLeastShare * tree_bytes);
  });
  for (const ProcessSample& sample : taken.processes) {
    if (auto node = waiting_.extract(sample.key)) {
      taken.new_processes.push_back(std::move(node.mapped()));
    }
  }
  (void)builder_.add(taken);
  for (const EventRecord& event : tick.events) {
    if (event.kind == EventKind::kExit) {
      ProcessRecord ended;
      ended.key = event.key;
      ended.exited_s = event.t_s;
      (void)builder_.process_ended(ended);
      waiting_.erase(event.key);
      admitted_.erase(event.key);
    }
  }
}

double next_judgement_s(double now_s, double cost_s) {
  constexpr double kSoonestS = 2.0;
  constexpr double kShareOfTime = 0.01;
  return now_s + std::max(kSoonestS, cost_s / kShareOfTime);
}

std::vector<SiteRow> SiteJudge::rows(const tracker::JudgeOptions& judging, std::size_t most) const {
  const tracker::RunSites& run = builder_.sites();
  const bool is_traced = std::any_of(run.processes.begin(), run.processes.end(),
                                     [](const tracker::TracedProcess& process) {
                                       return process.last.mode != TraceMode::kDormant;
                                     });
  if (!is_traced) {
    return {};
  }
  const tracker::SiteRanking ranking = tracker::rank_lines(run, tracker::series_options(judging));
  std::vector<SiteRow> rows;
  for (const tracker::RankedLine& line : ranking.lines) {
    if (!line.grows() || rows.size() >= most) {
      break;
    }
    rows.push_back({line_text(run, ranking.sites[line.sites.front()], line.name),
                    std::string(tracker::verdict_name(line.verdict)), line.growth_bytes_per_s,
                    line.live_bytes});
  }
  return rows;
}

}  // namespace tidemark::dashboard
