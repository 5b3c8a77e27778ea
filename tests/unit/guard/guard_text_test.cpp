// SPDX-License-Identifier: Apache-2.0
#include "guard/guard_text.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace tidemark::guard {
namespace {

using guard::GuardAct;
using guard::GuardReason;
using guard::GuardReport;
using testing::Contains;
using testing::Pair;

constexpr std::int64_t kMib = 1LL << 20U;

GuardReport report_of(GuardAct act, GuardReason reason) {
  GuardReport report;
  report.decision.act = act;
  report.decision.reason = reason;
  report.decision.headroom = guard::Headroom{40 * kMib, 1000U * kMib, 50U * kMib, 0};
  return report;
}

ReportFacts facts() {
  ReportFacts known;
  known.limit_source = "physical memory";
  known.signal_number = SIGTERM;
  known.step = 120;
  return known;
}

TEST(GuardText, SaysWhoGotTheSignalWhenAndWhy) {
  GuardReport report = report_of(GuardAct::kStop, GuardReason::kHeadroom);
  report.signalled = 2;
  report.trainers = {11, 12};
  EXPECT_EQ(report_text(report, facts()),
            "sent SIGTERM to pid 11, 12 at step 120: 40.0 MiB free of 1000 MiB (physical memory), "
            "less than the 50.0 MiB to be kept free");
}

TEST(GuardText, NamesWhoHeldTheMemory) {
  GuardReport stop = report_of(GuardAct::kStop, GuardReason::kHeadroom);
  stop.signalled = 1;
  stop.trainers = {11};
  ReportFacts known = facts();
  known.held_by = "held 4.0 s before by __main__.cache (+1.20 GiB)";

  EXPECT_THAT(report_text(stop, known),
              testing::EndsWith("less than the 50.0 MiB to be kept free; memory was held 4.0 s "
                                "before by __main__.cache (+1.20 GiB)"));
  EXPECT_THAT(report_text(report_of(GuardAct::kKill, GuardReason::kGraceOver), known),
              testing::EndsWith("; memory was held 4.0 s before by __main__.cache (+1.20 GiB)"));
  EXPECT_THAT(make_notice(stop, known).variables,
              Contains(Pair("TIDEMARK_HELD_BY", known.held_by)));
}

TEST(GuardText, SaysWhatADryRunWouldHaveDone) {
  GuardReport report = report_of(GuardAct::kStop, GuardReason::kHeadroom);
  report.signalled = 1;
  report.trainers = {11};
  ReportFacts dry = facts();
  dry.dry_run = true;
  EXPECT_THAT(report_text(report, dry), testing::StartsWith("would send SIGTERM to pid 11"));
  EXPECT_THAT(report_text(report_of(GuardAct::kKill, GuardReason::kGraceOver), dry),
              testing::StartsWith("would kill the whole tree"));
}

TEST(GuardText, SaysWhoHasEndedAndInADryRunThatNobodyGotTheSignal) {
  const GuardReport report = report_of(GuardAct::kStandDown, GuardReason::kHeadroom);
  ReportFacts dry = facts();
  dry.dry_run = true;
  EXPECT_EQ(report_text(report, facts()),
            "what got the signal has ended; 40.0 MiB free of 1000 MiB (physical memory)");
  EXPECT_EQ(report_text(report, dry),
            "what would have got the signal has ended by itself; 40.0 MiB free of 1000 MiB "
            "(physical memory)");
}

TEST(GuardText, SaysWhyNobodyGotTheSignal) {
  GuardReport report = report_of(GuardAct::kStop, GuardReason::kHeadroom);
  report.not_signalled = 1;
  report.signal_errno = EPERM;
  EXPECT_THAT(report_text(report, facts()),
              testing::HasSubstr("nobody got SIGTERM (1 could not be signalled: Operation not "
                                 "permitted)"));
}

TEST(GuardText, GivesTheForecastAsAnInterval) {
  GuardReport report = report_of(GuardAct::kWarn, GuardReason::kForecast);
  report.decision.limit_in_s_low = 90;
  report.decision.limit_in_s_high = 200;
  EXPECT_EQ(report_text(report, facts()),
            "memory runs short at step 120: 40.0 MiB free of 1000 MiB (physical memory); it leaks, "
            "and reaches the limit in 1 min 30 s to 3 min 20 s");
}

TEST(GuardText, CountsTheKilledAndTheRefused) {
  GuardReport report = report_of(GuardAct::kKill, GuardReason::kLastReserve);
  report.kill.killed = 3;
  report.kill.refused = 1;
  EXPECT_EQ(report_text(report, facts()),
            "killed 3 processes of the tree (1 may not be killed by this user) at step 120: 40.0 "
            "MiB free of 1000 MiB (physical memory), and the kernel would be next");
}

TEST(GuardText, LogLinesCarryTheTimeOfTheAction) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  EXPECT_EQ(log_line(1'700'000'000'000'000'000, "STOP", "x"), "2023-11-14 22:13:20 STOP: x");
}

TEST(GuardText, ANoticeHasTheFiguresForScripts) {
  GuardReport report = report_of(GuardAct::kStop, GuardReason::kForecast);
  report.signalled = 2;
  report.trainers = {11, 12};
  ReportFacts known = facts();
  known.run_file = "night.tidemark";

  const Notifier::Notice notice = make_notice(report, known);

  EXPECT_THAT(notice.variables, Contains(Pair("TIDEMARK_EVENT", "stop")));
  EXPECT_THAT(notice.variables, Contains(Pair("TIDEMARK_REASON", "forecast")));
  EXPECT_THAT(notice.variables, Contains(Pair("TIDEMARK_PIDS", "11 12")));
  EXPECT_THAT(notice.variables, Contains(Pair("TIDEMARK_STEP", "120")));
  EXPECT_THAT(notice.variables, Contains(Pair("TIDEMARK_FREE_BYTES", "41943040")));
  EXPECT_THAT(notice.variables, Contains(Pair("TIDEMARK_LIMIT_BYTES", "1048576000")));
  EXPECT_THAT(notice.variables, Contains(Pair("TIDEMARK_LIMIT_SOURCE", "physical memory")));
  EXPECT_THAT(notice.variables, Contains(Pair("TIDEMARK_RUN_FILE", "night.tidemark")));
}

TEST(GuardText, TheSetUpNamesEveryLimit) {
  GuardSetup setup;
  setup.limits = {{guard::LimitKind::kMachine, 1000U * kMib, "physical memory"},
                  {guard::LimitKind::kAddressSpace, 100U * kMib, "RLIMIT_AS of pid 11"},
                  {guard::LimitKind::kAddressSpace, 100U * kMib, "RLIMIT_AS of pid 12"}};
  setup.signal_number = SIGTERM;
  EXPECT_THAT(setup_lines(setup),
              testing::ElementsAre("guard: keeps 50.0 MiB free below 1000 MiB (physical memory)",
                                   "guard: keeps 5.00 MiB free below 100 MiB (RLIMIT_AS)",
                                   testing::HasSubstr("SIGTERM")));
}

}  // namespace
}  // namespace tidemark::guard
