// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "guard/guard_thread.h"
#include "guard/notifier.h"

namespace tidemark::guard {

// What is known beside the report itself.
struct ReportFacts {
  std::string limit_source;  // of the limit that is meant; empty: unknown
  int signal_number = 0;
  bool dry_run = false;
  std::optional<std::int64_t> step;
  std::string run_file;
  std::string held_by;  // of a stop or a kill, in words; empty: not known
};

// "warn", "stop", "kill", "stand_down"; "headroom", "forecast", ...: for scripts, they never
// change.
std::string_view act_name(GuardAct act);
std::string_view reason_name(GuardReason reason);

// "SIGTERM".
std::string signal_name(int number);

// What was done and why, with the figures: one sentence.
std::string report_text(const GuardReport& report, const ReportFacts& facts);
// Why a job is not guarded that is already where it would be stopped.
std::string refusal_text(const Headroom& headroom, std::string_view limit_source);
// Why a job is not guarded that this user may not signal.
std::string refusal_text(pid_t pid);
// "2026-11-16 12:30:05 STOP ...": a line of the log, in local time.
std::string log_line(std::int64_t wall_ns, std::string_view word, std::string_view text);

// For a command that wants to know.
Notifier::Notice make_notice(const GuardReport& report, const ReportFacts& facts);
Notifier::Notice make_notice(std::string_view event, std::string_view text,
                             const ReportFacts& facts);

// What is guarded and how, at the start; one line each.
struct GuardSetup {
  std::vector<WatchedLimit> limits;
  KeepFree keep_free;
  GuardSettings settings;
  int signal_number = 0;
  bool dry_run = false;
};
std::vector<std::string> setup_lines(const GuardSetup& setup);

}  // namespace tidemark::guard
