// SPDX-License-Identifier: Apache-2.0
#include "report/tree_text.h"
#include "common/units.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/report/sample_tick.h"

namespace tidemark::report {
namespace {

using testing::HasSubstr;
using testing::Not;
using tests::sample_record;
using tests::sample_tick;

TEST(TreeText, ShowsChildrenBelowTheirParentsWithRoles) {
  const std::string text = tree_text(sample_tick(0), sample_record);

  EXPECT_THAT(text, HasSubstr("\n1240 "));
  EXPECT_THAT(text, HasSubstr("\n  1241 "));
  EXPECT_THAT(text, HasSubstr("compile_worker"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("evil\\x1b[2J\\xff --x"));
}

TEST(TreeText, ShowsAZombieAndSurvivesAnUnknownProcess) {
  Tick tick = sample_tick(0);
  tick.processes[1].state = 'Z';
  tick.processes.push_back(tests::process_sample({9, 9}, 1));

  const std::string text = tree_text(tick, sample_record);

  EXPECT_THAT(text, HasSubstr("zombie"));
  EXPECT_THAT(text, HasSubstr("\n9 "));
}

TEST(TreeText, WorkersThatAreAlikeShareTwoRows) {
  Tick tick = sample_tick(0);
  std::map<ProcessKey, ProcessRecord> records;
  for (pid_t pid = 1300; pid < 1320; ++pid) {
    tick.processes.push_back(
        tests::process_sample({pid, 600}, static_cast<std::uint64_t>(pid - 1290)));
    ProcessRecord record = *sample_record(tests::kWorker);
    record.argv = "pool";
    records[{pid, 600}] = record;
  }

  const std::string text = tree_text(tick, [&](const ProcessKey& key) {
    const auto it = records.find(key);
    return it == records.end() ? sample_record(key) : &it->second;
  });

  EXPECT_THAT(text, HasSubstr("\n  1300 "));
  EXPECT_THAT(text, Not(HasSubstr("\n  1301 ")));
  EXPECT_THAT(text, HasSubstr("and 19 more like it, 11.0 MiB to 29.0 MiB each, up to pid 1319"));
}

// Imported series have pid 0, and so has the parent that nobody knows.
TEST(TreeText, ShowsAProcessWithoutAPidOnce) {
  Tick tick;
  tick.processes.emplace_back().rss_bytes = 100 * kMiB;
  ProcessRecord record;
  record.role = Role::kTrainer;

  EXPECT_EQ(tree_text(tick, [&](const ProcessKey&) { return &record; }),
            "PID                  ROLE                FOOTPRINT        RSS  COMMAND\n"
            "?                    trainer                     ?    100 MiB  ?\n");
}

TEST(TreeText, SaysThatSizesAreOfRssOrUnknown) {
  Tick tick;
  std::map<ProcessKey, ProcessRecord> records;
  for (pid_t pid = 10; pid < 15; ++pid) {
    tick.processes.emplace_back().key = {pid, 1};
    records[{pid, 1}].argv = "pool";
  }
  const auto text = [&] {
    return tree_text(tick, [&](const ProcessKey& key) { return &records.at(key); });
  };
  EXPECT_THAT(text(), HasSubstr("and 4 more like it, ? each, up to pid 14"));

  tick.processes[2].rss_bytes = 3 * kMiB;
  tick.processes[3].rss_bytes = 5 * kMiB;

  EXPECT_THAT(text(), HasSubstr("and 4 more like it, rss 3.00 MiB to 5.00 MiB each, up to pid 14"));
}

TEST(TreeText, NamesSeriesThatDifferInTheirNameOnly) {
  Tick tick;
  std::map<ProcessKey, ProcessRecord> records;
  for (std::uint64_t number = 1; number <= 5; ++number) {
    tick.processes.emplace_back().key = {0, number};
    records[{0, number}].comm = "series" + std::to_string(number);
  }

  const std::string text = tree_text(tick, [&](const ProcessKey& key) { return &records.at(key); });

  EXPECT_THAT(text, Not(HasSubstr("more like it")));
  EXPECT_THAT(text, HasSubstr("[series5]"));
}

}  // namespace
}  // namespace tidemark::report
