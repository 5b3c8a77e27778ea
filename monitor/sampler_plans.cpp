// SPDX-License-Identifier: Apache-2.0
#include "monitor/sampler_plans.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/text.h"

namespace tidemark::monitor {
namespace {

// Unused credit is kept for this long, so that a family of workers can be read in one go.
constexpr std::int64_t kMaxCreditNs = 100'000'000;
constexpr std::uint64_t kTooLargeBytes = std::uint64_t{64} << 30U;

}  // namespace

Discovery DiscoveryPlan::next(std::int64_t now_ns, std::optional<std::uint64_t> last_pid) {
  const bool new_pids = !last_pid || last_pid != last_pid_;
  last_pid_ = last_pid;
  table_is_due_ = table_is_due_ || new_pids;
  children_are_due_ = children_are_due_ || new_pids;
  if (table_is_due_ && now_ns >= next_table_ns_) {
    return Discovery::kTable;
  }
  return children_are_due_ && children_supported_ && now_ns >= next_children_ns_
             ? Discovery::kChildren
             : Discovery::kNothing;
}

void DiscoveryPlan::children_read(std::int64_t now_ns, std::int64_t cost_ns) {
  children_are_due_ = false;
  next_children_ns_ = now_ns + std::min(kTableEveryNs, 200 * cost_ns);
}

void DiscoveryPlan::table_read(std::int64_t now_ns, std::int64_t cost_ns) {
  table_is_due_ = false;
  children_are_due_ = false;
  next_table_ns_ = now_ns + std::max(kTableEveryNs, 100 * cost_ns);
}

void StatusPlan::begin_tick(std::size_t processes) {
  processes_ = processes;
  first_ = next_ < processes ? next_ : 0;
  next_ = takes_turns() ? (first_ + per_tick_) % processes : 0;
}

StatusRead StatusPlan::of(std::size_t position) const {
  const std::size_t behind =
      position >= first_ ? position - first_ : position + processes_ - first_;
  return takes_turns() && behind < per_tick_ ? StatusRead::kInTurn : again();
}

StatusRead StatusPlan::again() const {
  return takes_turns() ? StatusRead::kIfChanged : StatusRead::kAlways;
}

void StatusPlan::removed(std::size_t position) {
  if (position < next_) {
    --next_;
  }
}

PssBudget::PssBudget(PssMode mode, double share_of_wall_time)
    : mode_(mode), share_(share_of_wall_time) {}

bool PssBudget::may_read(std::int64_t now_ns) {
  if (mode_ != PssMode::kAuto) {
    return mode_ == PssMode::kAlways;
  }
  if (last_ns_ != 0) {
    const double earned = static_cast<double>(now_ns - last_ns_) * share_;
    credit_ns_ = std::min(kMaxCreditNs, credit_ns_ + static_cast<std::int64_t>(earned));
  }
  last_ns_ = now_ns;
  if (first_pass_ && credit_ns_ <= -kFirstPassNs) {
    first_pass_done();
  }
  return first_pass_ || credit_ns_ > 0;
}

void PssBudget::charge(std::int64_t cost_ns) { credit_ns_ -= cost_ns; }

void PssBudget::first_pass_done() {
  if (first_pass_) {
    first_pass_ = false;
    credit_ns_ = std::max(credit_ns_, -kStartDebtNs);
  }
}

bool PssBudget::too_large(std::uint64_t rss_bytes) const {
  return mode_ == PssMode::kAuto && rss_bytes > kTooLargeBytes;
}

Result<PssMode> parse_pss_mode(std::string_view text) {
  if (text == "off") {
    return PssMode::kOff;
  }
  if (text == "auto") {
    return PssMode::kAuto;
  }
  if (text == "always") {
    return PssMode::kAlways;
  }
  return Error{Errc::kUsage, "--pss is off, auto or always, not '" + escape_text(text) + "'"};
}

}  // namespace tidemark::monitor
