// SPDX-License-Identifier: Apache-2.0
#include "report/last_look_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/track_text.h"
#include "tests/support/judged_run.h"
#include "tests/support/owner_run.h"

namespace tidemark::report {
namespace {

using tests::OwnerRun;

std::unique_ptr<tracker::OwnerTrackBuilder> looked(const OwnerRun& run, std::size_t looks,
                                                   double end_s, bool has_oom_kill = false) {
  auto builder = std::make_unique<tracker::OwnerTrackBuilder>();
  for (const Tick& tick : run.ticks(looks)) {
    EXPECT_TRUE(builder->add(tick));
  }
  Tick end;
  end.t_s = end_s;
  if (has_oom_kill) {
    end.events.push_back({end_s, EventKind::kOomKill, {}, ""});
  }
  EXPECT_TRUE(builder->add(end));
  return builder;
}

TEST(LastLookText, SaysWhoHeldTheMemoryAndHowLongBefore) {
  const auto run = looked(tests::leaking_collator(), 3, 44.0, /*has_oom_kill=*/true);
  const auto report = make_last_look(run->owners(), {});

  ASSERT_TRUE(report);
  EXPECT_EQ(held_by_text(report->last), "held 4.0 s before by __main__.collator.cache (+40.0 MiB)");
  EXPECT_EQ(last_look_text(report->last, 200),
            "last look  4.0 s before the kernel's OOM killer came: what trainer, pid 101 "
            "(train.py) held more of than 40 s earlier\n"
            "   +40.0 MiB  __main__.collator.cache  dict, 1,204 entries, 100 % of its growth\n");
}

TEST(LastLookText, SaysWhatIsLargeAfterOneLook) {
  const auto run = looked(tests::leaking_collator(), 1, 3.0);
  const auto report = make_last_look(run->owners(), {});

  EXPECT_EQ(held_by_text(report->last), "held 3.0 s before by __main__.collator.cache (1.14 GiB)");
  EXPECT_THAT(last_look_text(report->last, 200),
              testing::StartsWith("last look  3.0 s before the end of the run: what trainer, pid "
                                  "101 (train.py) held most (what grew takes two looks)\n"
                                  "    1.14 GiB  __main__.collator.cache  dict, 1,164 entries\n"
                                  "     210 MiB  __main__.dataset  Dataset\n"));
}

TEST(LastLookText, EscapesNamesOfTheJob) {
  OwnerRun run;
  run.add_process(tests::trainer_record());
  run.add(tests::owner_record("__main__.\x1b[2J", "ev\xffil"),
          tests::entries_at([](std::size_t look) { return 20 * look; }));
  const auto looks = looked(run, 2, 30.0);
  const auto report = make_last_look(looks->owners(), {});

  EXPECT_THAT(held_by_text(report->last), testing::HasSubstr("by __main__.\\x1b[2J (+20.0 MiB)"));
  EXPECT_THAT(last_look_text(report->last), testing::HasSubstr("ev\\xffil"));
}

TEST(LastLookText, IsNoneWhereNobodyLooked) {
  EXPECT_FALSE(make_last_look(tracker::RunOwners{}, {}));
}

TEST(TrackJson, HasTheLastLook) {
  const auto run = looked(tests::leaking_collator(), 3, 44.0);
  const auto report = make_last_look(run->owners(), {});
  const tracker::JudgedRun judged = tests::leaking_run(1000, 1).judged();

  const nlohmann::json json = nlohmann::json::parse(track_json(judged, &report->last));
  const nlohmann::json& last = json["last_look"];
  EXPECT_EQ(last["pid"], 101);
  EXPECT_EQ(last["after"], "end_of_run");
  EXPECT_EQ(last["before_s"], 4.0);
  EXPECT_EQ(last["looks"], 3);
  EXPECT_EQ(last["holders"][0]["path"], "__main__.collator.cache");
  EXPECT_EQ(last["holders"][0]["grown_bytes"], 40 << 20);
  EXPECT_TRUE(nlohmann::json::parse(track_json(judged))["last_look"].is_null());
}

}  // namespace
}  // namespace tidemark::report
