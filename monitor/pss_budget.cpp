// SPDX-License-Identifier: Apache-2.0
#include "monitor/pss_budget.h"

#include <fmt/format.h>

#include "common/text.h"

#include <algorithm>

namespace tidemark::monitor {
namespace {

// Unused credit is kept for this long, so that a family of workers can be read in one go.
constexpr std::int64_t kMaxCreditNs = 100'000'000;
constexpr std::uint64_t kTooLargeBytes = std::uint64_t{64} << 30U;

}  // namespace

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
