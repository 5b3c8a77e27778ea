// SPDX-License-Identifier: Apache-2.0
#include "check/suppressions.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "common/text.h"
#include "tracker/sites/stack_lines.h"

namespace tidemark::check {
namespace {

// What samples of allocated bytes leave open, as a share of the bytes: three sigmas.
double sampling_doubt(const report::ProfileReport& report, double bytes) {
  const auto& every = report.coverage.sample_every_bytes;
  return every && bytes > 0.0 ? 3.0 * std::sqrt(static_cast<double>(*every) / bytes) : 0.0;
}

bool matches(const std::string& pattern, const std::string& text) {
  return !text.empty() && ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

// As people write it: without nameless namespaces and arguments, with and without what it is in.
bool matches_function(const std::string& pattern, std::string function) {
  constexpr std::string_view kNameless = "(anonymous namespace)::";
  if (matches(pattern, function)) {
    return true;
  }
  for (std::size_t at = 0; (at = function.find(kNameless, at)) != std::string::npos;) {
    function.erase(at, kNameless.size());
  }
  const std::string bare = function.substr(0, function.find('('));
  const std::size_t last = bare.rfind("::");
  return matches(pattern, function) || matches(pattern, bare) ||
         (last != std::string::npos && matches(pattern, bare.substr(last + 2)));
}

bool matches(const std::string& pattern, const FrameRecord& frame) {
  if (matches_function(pattern, frame.function) || matches(pattern, frame.file)) {
    return true;
  }
  const std::string name(basename_of(frame.file));
  if (matches(pattern, name)) {
    return true;
  }
  return frame.line && (matches(pattern, fmt::format("{}:{}", frame.file, *frame.line)) ||
                        matches(pattern, fmt::format("{}:{}", name, *frame.line)));
}

// Which of them a call stack is suppressed by: the first that matches.
std::optional<std::size_t> find_suppression(const report::ProfileReport& report, std::size_t site,
                                            std::span<const Suppression> suppressions) {
  for (std::size_t i = 0; i < suppressions.size(); ++i) {
    if (matches_site(suppressions[i].site, *report.run, report.ranking.sites[site].frames)) {
      return i;
    }
  }
  return std::nullopt;
}

}  // namespace

Result<std::chrono::sys_days> parse_date(std::string_view text) {
  const auto parts = split(text, '-');
  if (parts.size() == 3 && parts[0].size() == 4 && parts[1].size() == 2 && parts[2].size() == 2) {
    const auto year = parse_number<int>(parts[0]);
    const auto month = parse_number<unsigned>(parts[1]);
    const auto day = parse_number<unsigned>(parts[2]);
    if (year && month && day) {
      const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(*month),
                                             std::chrono::day(*day)};
      if (date.ok()) {
        return std::chrono::sys_days(date);
      }
    }
  }
  return Error{Errc::kUsage,
               fmt::format("'{}' is not a date; write it like 2027-01-31", escape_text(text))};
}

std::string date_text(std::chrono::sys_days date) {
  const std::chrono::year_month_day parts(date);
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(parts.year()),
                     static_cast<unsigned>(parts.month()), static_cast<unsigned>(parts.day()));
}

std::chrono::sys_days today_utc() {
  return std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
}

bool matches_site(std::string_view pattern, const tracker::RunSites& run,
                  const std::vector<std::uint32_t>& frames) {
  const std::string text(pattern);
  const std::vector<tracker::ShownFrame> shown = tracker::frames_of(run, frames);
  return std::any_of(shown.begin(), shown.end(),
                     [&](const tracker::ShownFrame& each) { return matches(text, *each.frame); });
}

bool is_suppressed(const report::ProfileReport& report, const tracker::RankedLine& line,
                   std::span<const Suppression> suppressions) {
  return std::all_of(line.sites.begin(), line.sites.end(), [&](std::size_t site) {
    return find_suppression(report, site, suppressions).has_value();
  });
}

bool is_about_growth(const tracker::BudgetRow& row) {
  return row.kind == tracker::BudgetKind::kGrowth ||
         row.kind == tracker::BudgetKind::kBaselineGrowth;
}

SuppressedGrowth suppressed_growth(const report::ProfileReport& report,
                                   std::span<const Suppression> suppressions) {
  SuppressedGrowth growth;
  double bytes = 0.0;
  const auto take = [&](const tracker::HeldMemory& held) {
    bytes += held.growth_bytes;
    growth.bytes_per_s += held.growth_bytes_per_s;
    if (held.growth_bytes_per_step) {
      growth.bytes_per_step = growth.bytes_per_step.value_or(0.0) + *held.growth_bytes_per_step;
    }
  };
  for (const tracker::RankedLine& line : report.ranking.lines) {
    if (!line.grows()) {
      continue;
    }
    // The line as a whole is known better than each of its stacks, which may be of few samples.
    const bool is_whole = is_suppressed(report, line, suppressions);
    if (is_whole) {
      take(line);
    }
    for (const std::size_t i : line.sites) {
      const auto by = find_suppression(report, i, suppressions);
      const tracker::RankedSite& site = report.ranking.sites[i];
      if (by && !is_whole && site.grows()) {
        take(site);
      }
      if (by && (is_whole || site.grows())) {
        growth.used.insert(*by);
      }
    }
  }
  growth.doubt += sampling_doubt(report, bytes);
  return growth;
}

void suppress(tracker::BudgetRows& rows, const SuppressedGrowth& growth) {
  for (tracker::BudgetRow& row : rows) {
    if (!is_about_growth(row) || row.state != tracker::BudgetState::kExceeded ||
        growth.used.empty()) {
      continue;
    }
    const double taken = row.unit == tracker::BudgetUnit::kBytesPerStep
                             ? growth.bytes_per_step.value_or(0.0)
                             : growth.bytes_per_s;
    const double missed = growth.doubt * taken;
    for (std::optional<double>* const figure : {&row.measured, &row.low, &row.high}) {
      if (*figure) {
        **figure -= taken;
      }
    }
    if (row.low.value_or(0.0) <= std::max(row.limit.value_or(0.0), missed)) {
      row.state = tracker::BudgetState::kSuppressed;
    }
  }
}

std::vector<Suppression> suppressions_of(std::span<const Suppression> all, std::string_view check,
                                         std::chrono::sys_days today, bool expired) {
  std::vector<Suppression> chosen;
  std::copy_if(all.begin(), all.end(), std::back_inserter(chosen), [&](const Suppression& each) {
    const bool is_meant = each.checks.empty() || std::find(each.checks.begin(), each.checks.end(),
                                                           check) != each.checks.end();
    return is_meant && (each.expires < today) == expired;
  });
  return chosen;
}

}  // namespace tidemark::check
