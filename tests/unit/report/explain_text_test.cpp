// SPDX-License-Identifier: Apache-2.0
// What `tidemark explain` prints.
#include "report/explain_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "report/ledger_words.h"
#include "tests/support/golden.h"
#include "tests/support/ledgers.h"

namespace tidemark::report {
namespace {

using testing::HasSubstr;
using testing::Not;
using tests::kLedgerMiB;
using tests::ledger_of;
using tests::ledger_row;
using tests::ledger_tick;

ProcessRecord process_record(pid_t pid, Role role, const std::string& argv) {
  ProcessRecord record;
  record.key = {pid, 7};
  record.role = role;
  record.comm = "python3";
  record.argv = argv;
  return record;
}

// A trainer with a bit of everything.
MemoryLedger trainer_ledger(double t_s, std::uint64_t grown_mib = 0) {
  using enum LedgerKind;
  MemoryLedger ledger = ledger_of(
      4711, t_s,
      {ledger_row(kAnonymous, 1'860 + grown_mib, 212), ledger_row(kPythonInUse, 612, 640),
       ledger_row(kPythonFree, 28, 640), ledger_row(kMallocInUse, 210, 13),
       ledger_row(kMallocFree, 96, 13), ledger_row(kProgram, 180, 5, "/usr/lib/libtorch_cpu.so"),
       ledger_row(kProgram, 20, 4, "/usr/bin/python3.11"),
       ledger_row(kFile, 400, 1, "/data/train.arrow"),
       ledger_row(kSharedMemory, 64, 8, "/dev/shm/torch_4711_*"), ledger_row(kThreadStacks, 12, 24),
       ledger_row(kOther, 0, 3)});
  ledger.rows[8].maker_pid = 4711;
  ledger.rss_bytes += 3 * kLedgerMiB;
  ledger.threads = 24;
  ledger.malloc_heaps = 12;
  ledger.rows[0].huge_pages_bytes = 1'200 * kLedgerMiB;
  return ledger;
}

struct MadeReport {
  std::unique_ptr<tracker::LedgerBuilder> builder = std::make_unique<tracker::LedgerBuilder>();
  ExplainReport report;

  std::string text(std::size_t columns = 100) const {
    return explain_text(report, {.columns = columns});
  }
  nlohmann::json json() const { return nlohmann::json::parse(explain_json(report)); }
};

MadeReport made(std::vector<Tick> ticks) {
  ticks.front().new_processes = {process_record(4711, Role::kTrainer, "python3 train.py"),
                                 process_record(4720, Role::kDataloaderWorker, "python3 train.py"),
                                 process_record(4721, Role::kDataloaderWorker, "python3 train.py")};
  MadeReport made;
  for (const Tick& tick : ticks) {
    EXPECT_TRUE(made.builder->add(tick));
  }
  made.report = make_explain_report(*made.builder);
  return made;
}

TEST(ExplainText, ShowsOneProcess) {
  const MadeReport made_report = made({ledger_tick(0.0, {trainer_ledger(0.0)})});

  EXPECT_EQ(tests::difference_from_golden("explain/one_process.txt", made_report.text()), "");
}

TEST(ExplainText, ShowsATreeThatGrows) {
  const auto ledgers = [](double t_s, std::uint64_t grown) {
    std::vector<MemoryLedger> all{trainer_ledger(t_s, grown)};
    for (const pid_t pid : {4720, 4721}) {
      all.push_back(
          ledger_of(pid, t_s,
                    {ledger_row(LedgerKind::kAnonymous, 300, 40),
                     ledger_row(LedgerKind::kProgram, 150, 5, "/usr/lib/libtorch_cpu.so")}));
    }
    return all;
  };
  std::vector<Tick> ticks{ledger_tick(0.0, ledgers(0.0, 0)), ledger_tick(20.0, ledgers(20.0, 312))};
  SystemSample& machine = ticks[1].system.emplace();
  machine.cgroup_charged_bytes = 14'500 * kLedgerMiB;
  machine.cgroup_cache_bytes = 5'000 * kLedgerMiB;
  machine.cgroup_used_bytes = 9'400 * kLedgerMiB;
  machine.cgroup_limit_bytes = 16'384 * kLedgerMiB;

  EXPECT_EQ(tests::difference_from_golden("explain/tree.txt", made(ticks).text()), "");
}

TEST(ExplainText, FitsItsColumns) {
  for (const std::size_t columns : {80U, 100U, 140U}) {
    const std::string text =
        made({ledger_tick(0.0, {trainer_ledger(0.0)}), ledger_tick(9.0, {trainer_ledger(9.0, 50)})})
            .text(columns);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      EXPECT_LE(end - at, columns) << text.substr(at, end - at);
      at = end + 1;
    }
  }
}

TEST(ExplainText, ShowsTheRestAsARow) {
  const std::string text = made({ledger_tick(0.0, {trainer_ledger(0.0)})}).text();

  EXPECT_THAT(text, HasSubstr("3.00 MiB"));
  EXPECT_THAT(text, HasSubstr("not explained"));
}

TEST(ExplainText, EscapesNamesOfFiles) {
  MemoryLedger ledger =
      ledger_of(4711, 0.0, {ledger_row(LedgerKind::kFile, 100, 1, "/tmp/\x1b[31mevil\n\xff")});
  const std::string text = made({ledger_tick(0.0, {ledger})}).text();

  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("evil\\n\\xff"));
}

TEST(ExplainText, NamesAllRowsWhenAsked) {
  MadeReport made_report = made({ledger_tick(0.0, {trainer_ledger(0.0)})});
  EXPECT_THAT(made_report.text(), Not(HasSubstr("libtorch_cpu.so")));
  made_report.report.with_all = true;

  EXPECT_THAT(made_report.text(), HasSubstr("program /usr/lib/libtorch_cpu.so"));
}

TEST(ExplainText, SaysWhatTheTracerKnows) {
  MemoryLedger ledger = trainer_ledger(0.0);
  ledger.traced_live_bytes = 900 * kLedgerMiB;
  ledger.traced_slack_bytes = 120 * kLedgerMiB;
  ledger.traced_unhooked_bytes = 4 * kLedgerMiB;

  EXPECT_THAT(made({ledger_tick(0.0, {ledger})}).text(), HasSubstr("900 MiB is in live blocks"));
}

TEST(ExplainText, AnswersByWhatMattersMost) {
  using enum LedgerKind;
  const auto answer = [](LedgerKind kind) {
    const MadeReport made_report =
        made({ledger_tick(0.0, {ledger_of(4711, 0.0, {ledger_row(kind, 500)})})});
    return ledger_answer_text(made_report.report);
  };
  EXPECT_EQ(
      answer(kMallocInUse),
      "most of trainer, pid 4711 (train.py) is blocks of malloc in use (500 MiB, 100 %). Next: "
      "tidemark profile --pid 4711 names the lines that allocate it.");
  EXPECT_THAT(answer(kPythonInUse), HasSubstr("Next: tidemark owners --pid 4711"));
  EXPECT_THAT(answer(kMallocFree), HasSubstr("tidemark rule-out --pid 4711"));
  EXPECT_THAT(answer(kFile), HasSubstr("the kernel drops pages of files"));
}

TEST(ExplainText, NamesTheRowThatGrows) {
  const MadeReport made_report = made(
      {ledger_tick(0.0, {trainer_ledger(0.0)}), ledger_tick(20.0, {trainer_ledger(20.0, 312)})});

  EXPECT_THAT(
      ledger_answer_text(made_report.report),
      HasSubstr("grew by 312 MiB in 20 s: large blocks and other anonymous memory (312 MiB, "
                "100 %)"));
}

TEST(ExplainText, TellsWhatMallocKeepsWhateverGrows) {
  using enum LedgerKind;
  const auto ticks = [](std::uint64_t free) {
    return std::vector<Tick>{
        ledger_tick(
            0.0,
            {ledger_of(4711, 0.0, {ledger_row(kMallocInUse, 100), ledger_row(kMallocFree, free)})}),
        ledger_tick(9.0,
                    {ledger_of(4711, 9.0,
                               {ledger_row(kMallocInUse, 110), ledger_row(kMallocFree, free)})})};
  };

  EXPECT_THAT(ledger_answer_text(made(ticks(90)).report),
              HasSubstr("blocks of malloc in use (10.0 MiB, 100 %). 90.0 MiB (45 %) was freed, and "
                        "malloc keeps it. Next: "));
  EXPECT_THAT(ledger_answer_text(made(ticks(9)).report), Not(HasSubstr("was freed")));
}

TEST(ExplainText, TellsKnownCauses) {
  MemoryLedger ledger = trainer_ledger(0.0);
  ledger.malloc_heaps = 40;

  EXPECT_THAT(made({ledger_tick(0.0, {ledger})}).text(), HasSubstr("MALLOC_ARENA_MAX=2"));
}

TEST(ExplainText, OfNothingSaysSo) {
  tracker::LedgerBuilder builder;

  EXPECT_THAT(ledger_answer_text(make_explain_report(builder)), HasSubstr("NO DATA"));
}

TEST(ExplainJson, HasRowsThatAddUp) {
  const nlohmann::json json = made({ledger_tick(0.0, {trainer_ledger(0.0)})}).json();

  EXPECT_EQ(json["schema"], 1);
  const nlohmann::json& process = json["processes"][0];
  std::int64_t rss = process["unexplained_rss_bytes"].get<std::int64_t>();
  std::int64_t footprint = process["unexplained_footprint_bytes"].get<std::int64_t>();
  for (const nlohmann::json& row : process["rows"]) {
    rss += row["rss_bytes"].get<std::int64_t>();
    footprint += row["footprint_bytes"].get<std::int64_t>();
    EXPECT_TRUE(row["rss_growth_bytes"].is_null());
  }
  EXPECT_EQ(rss, process["rss_bytes"].get<std::int64_t>());
  EXPECT_EQ(footprint, process["footprint_bytes"].get<std::int64_t>());
  EXPECT_EQ(process["program"], "train.py");
  EXPECT_EQ(process["rows"][0]["kind"], "anonymous");
  EXPECT_TRUE(process["problem"].is_null());
}

TEST(ExplainJson, HasGrowthOfSeveralLooks) {
  const nlohmann::json json = made({ledger_tick(0.0, {trainer_ledger(0.0)}),
                                    ledger_tick(20.0, {trainer_ledger(20.0, 312)})})
                                  .json();

  EXPECT_EQ(json["processes"][0]["looks"], 2);
  EXPECT_EQ(json["processes"][0]["rows"][0]["rss_growth_bytes"], 312 * kLedgerMiB);
  EXPECT_EQ(json["tree"]["rows"][0]["footprint_growth_bytes"], 312 * kLedgerMiB);
}

}  // namespace
}  // namespace tidemark::report
