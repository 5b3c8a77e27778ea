// SPDX-License-Identifier: Apache-2.0
// What is said about processes of the job that the tracer is not in.
#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "common/text.h"
#include "common/units.h"
#include "report/profile_text.h"

namespace tidemark::report {
namespace {

using tracker::UntracedGrowth;

// Behind "because".
std::string_view reason_text(UntracedReason reason) {
  switch (reason) {
    case UntracedReason::kUnknown:
      break;
    case UntracedReason::kNotFollowed:
      return "--no-follow leaves what the command starts alone";
    case UntracedReason::kStatic:
      return "it is statically linked";
    case UntracedReason::kOtherLibc:
      return "its C library is not glibc";
    case UntracedReason::kOtherArchitecture:
      return "it is not a 64-bit program of this machine";
    case UntracedReason::kPrivileges:
      return "it has raised privileges (set-user-ID, set-group-ID or capabilities)";
    case UntracedReason::kOtherUser:
      return "it runs as another user";
    case UntracedReason::kOutOfReach:
      return "the tracer is not below its root folder";
    case UntracedReason::kNoVariables:
      return "it was started without the variables that load the tracer";
  }
  return "";
}

// `before` comes before the reason where it is known.
std::string why_text(UntracedReason reason, std::string_view before) {
  const std::string_view why = reason_text(reason);
  return why.empty() ? "; why is not known" : fmt::format("{}{}", before, why);
}

std::string name_of_process(const UntracedGrowth& growth) {
  constexpr std::string_view kNoRole = "other, ";
  const std::string text = process_text(growth.track->label, growth.track->key);
  return text.starts_with(kNoRole) ? text.substr(kNoRole.size()) : text;
}

bool has_grown(const UntracedGrowth& growth) { return growth.growth_bytes > 0.0; }

}  // namespace

bool has_unseen_growth(const ProfileReport& report) {
  return !report.untraced.empty() && has_grown(report.untraced.front());
}

std::string unseen_growth_text(const ProfileReport& report) {
  if (!has_unseen_growth(report)) {
    return "";
  }
  const UntracedGrowth& first = report.untraced.front();
  std::string text =
      fmt::format("NOT SEEN: {} grew by {}{} and was not traced{}.", name_of_process(first),
                  format_bytes(first.growth_bytes), first.keeps_growing ? "" : ", then no further,",
                  why_text(first.track->reason, ", because "));
  std::size_t others = 0;
  double bytes = 0.0;
  for (std::size_t i = 1; i < report.untraced.size() && has_grown(report.untraced[i]); ++i) {
    ++others;
    bytes += report.untraced[i].growth_bytes;
  }
  if (others > 0) {
    text += fmt::format(" {} not traced grew by {}.",
                        format_count(others, "more process that was", "more processes that were"),
                        format_bytes(bytes));
  }
  return text;
}

std::string untraced_text(const ProfileReport& report, const ProfileStyle& style) {
  constexpr std::size_t kMost = 5;
  std::string out;
  for (std::size_t i = 0; i < std::min(report.untraced.size(), kMost); ++i) {
    const UntracedGrowth& growth = report.untraced[i];
    const std::string change =
        has_grown(growth)
            ? fmt::format("{} since {}, now ", format_bytes_delta(growth.growth_bytes),
                          format_clock(growth.from_s))
            : "";
    out += wrap_text(
        out.empty() ? "untraced " : "         ",
        fmt::format("{}: {}{}{}", name_of_process(growth), change,
                    format_bytes(growth.footprint_bytes), why_text(growth.track->reason, "; ")),
        style.columns);
  }
  if (report.untraced.size() > kMost) {
    out += fmt::format("         and {} more\n", report.untraced.size() - kMost);
  }
  if (has_unseen_growth(report)) {
    out += wrap_text("         ",
                     "Call stacks are of traced processes alone; tidemark track judges the memory "
                     "of all of them.",
                     style.columns);
  }
  return out;
}

}  // namespace tidemark::report
