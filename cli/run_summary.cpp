// SPDX-License-Identifier: Apache-2.0
#include "cli/run_summary.h"

#include "cli/tick_json.h"

namespace tidemark::cli {
namespace {

void extend(Extent& extent, std::uint64_t bytes, double t_s, bool is_first) {
  if (is_first) {
    extent.start_bytes = bytes;
  }
  if (is_first || bytes > extent.peak_bytes) {
    extent.peak_bytes = bytes;
    extent.peak_t_s = t_s;
  }
  extent.end_bytes = bytes;
}

void append_extent(JsonWriter& json, const Extent& extent, const RunSummary& summary) {
  const auto growth = static_cast<double>(extent.growth_bytes());
  const double minutes = summary.duration_s().value_or(0.0) / 60.0;
  const auto steps = summary.steps();
  json.begin_object();
  json.field("start_bytes", extent.start_bytes);
  json.field("end_bytes", extent.end_bytes);
  json.field("peak_bytes", extent.peak_bytes);
  json.field("peak_t_s", summary.duration_s() ? std::optional(extent.peak_t_s) : std::nullopt);
  json.field("growth_bytes", extent.growth_bytes());
  json.field("growth_bytes_per_min", minutes > 0 ? std::optional(growth / minutes) : std::nullopt);
  json.field("growth_bytes_per_step",
             steps ? std::optional(growth / static_cast<double>(*steps)) : std::nullopt);
  json.end_object();
}

}  // namespace

std::uint64_t RunSummary::figure_of(const GroupSample& sum) const {
  return uses_footprint_ ? sum.footprint_bytes : sum.rss_bytes;
}

void RunSummary::add(const Tick& tick) {
  const bool is_first = ticks_++ == 0;
  if (is_first) {
    first_t_s_ = tick.t_s;
    uses_footprint_ = has_footprint(tick);
  }
  last_t_s_ = tick.t_s;
  if (tick.step) {
    first_step_ = first_step_.value_or(*tick.step);
    last_step_ = tick.step;
  }
  extend(tree_, figure_of(tick.tree), tick.t_s, is_first);
  for (const RoleSample& role : tick.roles) {
    const auto [entry, is_new] = roles_.try_emplace(role.role);
    extend(entry->second, figure_of(role.sum), tick.t_s, is_new);
  }
  for (const LossRecord& loss : tick.losses) {
    losses_[loss.what] += loss.count;
  }
}

std::optional<std::int64_t> RunSummary::steps() const {
  if (!first_step_ || *last_step_ <= *first_step_) {
    return std::nullopt;
  }
  return *last_step_ - *first_step_;
}

void append_summary_json(JsonWriter& json, const RunSummary& summary) {
  json.begin_object();
  json.field("schema", kJsonSchema);
  json.field("kind", "summary");
  json.field("ticks", summary.ticks());
  json.field("duration_s", summary.duration_s());
  json.field("steps", summary.steps());
  json.field("metric", summary.metric());
  json.key("summary");
  append_extent(json, summary.tree(), summary);
  json.key("roles").begin_object();
  for (const auto& [role, extent] : summary.roles()) {
    json.key(role_name(role));
    append_extent(json, extent, summary);
  }
  json.end_object();
  json.key("losses").begin_object();
  for (const auto& [what, count] : summary.losses()) {
    json.field(what, count);
  }
  json.end_object();
  json.end_object();
}

}  // namespace tidemark::cli
