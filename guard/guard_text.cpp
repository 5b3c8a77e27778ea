// SPDX-License-Identifier: Apache-2.0
#include "guard/guard_text.h"

#include <string.h>

#include <algorithm>
#include <array>
#include <ctime>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/units.h"

namespace tidemark::guard {
namespace {

std::string free_text(const Headroom& headroom, const ReportFacts& facts) {
  const std::string free =
      headroom.free_bytes >= 0
          ? format_bytes(static_cast<std::uint64_t>(headroom.free_bytes)) + " free"
          : format_bytes(static_cast<std::uint64_t>(-headroom.free_bytes)) + " beyond the limit";
  return fmt::format("{} of {}{}", free, format_bytes(headroom.limit_bytes),
                     facts.limit_source.empty() ? "" : " (" + facts.limit_source + ")");
}

std::string forecast_text(const GuardDecision& decision) {
  if (!decision.limit_in_s_low || !decision.limit_in_s_high) {
    return "";
  }
  return fmt::format("; it leaks, and reaches the limit in {} to {}",
                     format_duration(*decision.limit_in_s_low),
                     format_duration(*decision.limit_in_s_high));
}

std::string why_text(const GuardReport& report, const ReportFacts& facts) {
  const GuardDecision& decision = report.decision;
  std::string figures =
      decision.headroom ? free_text(*decision.headroom, facts) : "free memory unknown";
  const std::string kept =
      decision.headroom ? format_bytes(decision.headroom->keep_free_bytes) : "?";
  switch (decision.reason) {
    case GuardReason::kHeadroom:
      return decision.act == GuardAct::kWarn ? fmt::format("{}, {} are to be kept free{}", figures,
                                                           kept, forecast_text(decision))
                                             : fmt::format("{}, less than the {} to be kept free{}",
                                                           figures, kept, forecast_text(decision));
    case GuardReason::kForecast:
      return figures + forecast_text(decision);
    case GuardReason::kThrashing:
      return fmt::format("{}; everybody waited for memory in {:.0f} % of the last 10 s", figures,
                         decision.pressure_percent.value_or(0.0));
    case GuardReason::kGraceOver:
      return fmt::format("the grace time is over; {}", figures);
    case GuardReason::kLastReserve:
      return fmt::format("{}, and the kernel would be next", figures);
  }
  return figures;
}

std::string joined_pids(const GuardReport& report, std::string_view separator) {
  const auto named =
      static_cast<std::ptrdiff_t>(std::min<std::size_t>(report.signalled, report.trainers.size()));
  return fmt::format(
      "{}", fmt::join(report.trainers.begin(), report.trainers.begin() + named, separator));
}

std::string pids_text(const GuardReport& report) {
  const std::string text = joined_pids(report, ", ");
  return report.signalled > report.trainers.size()
             ? fmt::format("{} and {} more", text, report.signalled - report.trainers.size())
             : text;
}

std::string stop_text(const GuardReport& report, const ReportFacts& facts) {
  const std::string name = signal_name(facts.signal_number);
  std::string text = report.signalled > 0
                         ? fmt::format("{} {} to pid {}", facts.dry_run ? "would send" : "sent",
                                       name, pids_text(report))
                         : fmt::format("nobody got {}", name);
  if (report.not_signalled > 0) {
    text += fmt::format(" ({} could not be signalled: {})", report.not_signalled,
                        ::strerrordesc_np(report.signal_errno));
  }
  return text;
}

std::string holder_text(const ReportFacts& facts) {
  return facts.held_by.empty() ? "" : "; memory was " + facts.held_by;
}

std::string kill_text(const GuardReport& report, const ReportFacts& facts) {
  if (facts.dry_run) {
    return "would kill the whole tree";
  }
  std::string text = fmt::format("killed {} of the tree",
                                 format_count(report.kill.killed, "process", "processes"));
  if (report.group_killed) {
    text += " and all of its control group";
  }
  if (report.kill.refused > 0) {
    text += fmt::format(" ({} may not be killed by this user)", report.kill.refused);
  }
  return text;
}

}  // namespace

std::string_view act_name(GuardAct act) {
  constexpr std::array<std::string_view, 5> kNames{"nothing", "warn", "stop", "kill", "stand_down"};
  return kNames[static_cast<std::size_t>(act)];
}

std::string_view reason_name(GuardReason reason) {
  constexpr std::array<std::string_view, 5> kNames{"headroom", "forecast", "thrashing",
                                                   "grace_over", "last_reserve"};
  return kNames[static_cast<std::size_t>(reason)];
}

std::string signal_name(int number) {
  const char* const name = ::sigabbrev_np(number);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", number);
}

std::string report_text(const GuardReport& report, const ReportFacts& facts) {
  const std::string at = facts.step ? fmt::format(" at step {}", *facts.step) : "";
  switch (report.decision.act) {
    case GuardAct::kWarn:
      return fmt::format("memory runs short{}: {}", at, why_text(report, facts));
    case GuardAct::kStop:
      return fmt::format("{}{}: {}{}", stop_text(report, facts), at, why_text(report, facts),
                         holder_text(facts));
    case GuardAct::kKill:
      return fmt::format("{}{}: {}{}", kill_text(report, facts), at, why_text(report, facts),
                         holder_text(facts));
    case GuardAct::kStandDown:
      return fmt::format("what {} the signal has ended{}; {}",
                         facts.dry_run ? "would have got" : "got",
                         facts.dry_run ? " by itself" : "",
                         report.decision.headroom ? free_text(*report.decision.headroom, facts)
                                                  : "free memory unknown");
    case GuardAct::kNothing:
      break;
  }
  return "";
}

std::string refusal_text(const Headroom& headroom, std::string_view limit_source) {
  const auto free = static_cast<std::uint64_t>(std::max<std::int64_t>(0, headroom.free_bytes));
  return fmt::format(
      "{} are free below {} ({}), and {} are to be kept free: the job would be stopped at once",
      format_bytes(free), format_bytes(headroom.limit_bytes), limit_source,
      format_bytes(headroom.keep_free_bytes));
}

std::string refusal_text(pid_t pid) {
  return fmt::format("pid {} belongs to somebody else, and this user may not signal it", pid);
}

std::string log_line(std::int64_t wall_ns, std::string_view word, std::string_view text) {
  const std::time_t seconds = wall_ns / kNsPerSecond;
  std::tm local{};
  ::localtime_r(&seconds, &local);
  std::array<char, 32> time{};
  const std::size_t size = std::strftime(time.data(), time.size(), "%F %T", &local);
  return fmt::format("{} {}: {}", std::string_view(time.data(), size), word, text);
}

Notifier::Notice make_notice(std::string_view event, std::string_view text,
                             const ReportFacts& facts) {
  const std::string step = facts.step ? fmt::format("{}", *facts.step) : "";
  return {std::string(text),
          {{"TIDEMARK_EVENT", std::string(event)},
           {"TIDEMARK_STEP", step},
           {"TIDEMARK_RUN_FILE", facts.run_file},
           {"TIDEMARK_DRY_RUN", facts.dry_run ? "1" : "0"},
           {"TIDEMARK_REASON", ""},
           {"TIDEMARK_PIDS", ""},
           {"TIDEMARK_FREE_BYTES", ""},
           {"TIDEMARK_LIMIT_BYTES", ""},
           {"TIDEMARK_LIMIT_SOURCE", ""},
           {"TIDEMARK_HELD_BY", facts.held_by}}};
}

Notifier::Notice make_notice(const GuardReport& report, const ReportFacts& facts) {
  Notifier::Notice notice =
      make_notice(act_name(report.decision.act), report_text(report, facts), facts);
  const auto set = [&](std::string_view name, std::string value) {
    for (auto& [known, text] : notice.variables) {
      if (known == name) {
        text = std::move(value);
        return;
      }
    }
  };
  set("TIDEMARK_REASON", std::string(reason_name(report.decision.reason)));
  set("TIDEMARK_PIDS", joined_pids(report, " "));
  set("TIDEMARK_LIMIT_SOURCE", facts.limit_source);
  if (report.decision.headroom) {
    set("TIDEMARK_FREE_BYTES", fmt::format("{}", report.decision.headroom->free_bytes));
    set("TIDEMARK_LIMIT_BYTES", fmt::format("{}", report.decision.headroom->limit_bytes));
  }
  return notice;
}

std::vector<std::string> setup_lines(const GuardSetup& setup) {
  std::vector<std::string> lines;
  for (const WatchedLimit& limit : setup.limits) {
    // "RLIMIT_AS of pid 1234": ranks mostly have the same.
    const std::string source = limit.source.substr(0, limit.source.find(" of pid "));
    std::string line = fmt::format("guard: keeps {} free below {} ({})",
                                   format_bytes(setup.keep_free.of(limit.bytes)),
                                   format_bytes(limit.bytes), source);
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) {
      lines.push_back(std::move(line));
    }
  }
  lines.push_back(fmt::format(
      "guard: {}{} to the trainer when that is touched, or when it leaks and a limit is nearer "
      "than "
      "{}; {} later, the whole tree is killed",
      setup.dry_run ? "dry run, says when it would send " : "sends ",
      signal_name(setup.signal_number), format_duration(to_seconds(setup.settings.horizon_ns)),
      format_duration(to_seconds(setup.settings.grace_ns))));
  return lines;
}

}  // namespace tidemark::guard
