// SPDX-License-Identifier: Apache-2.0
// Which lines of code hold the growth: call stacks that go through one line are one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/site_run.h"
#include "tests/unit/tracker/traced_run.h"
#include "tracker/sites/site_ranking.h"

namespace tidemark::tracker {
namespace {

using testing::ElementsAre;
using tests::constant;
using tests::kSiteMiB;
using tests::rising;
using tests::SiteRun;
using tests::trainer_record;

// A frame of a library: no line of the user's.
std::uint32_t library_frame(SiteRun& run, const std::string& function) {
  return run.add_frame(function, "", {}, "/usr/lib/libtorch_cpu.so");
}

// The name of a line that is a function of the user's program.
std::string in_program(const std::string& function) { return "/home/me/train " + function; }

TEST(SiteLines, AddUpTheStacksThatGoThroughThem) {
  SiteRun run = one_process();
  run.with_steps = true;
  const auto line = run.add_frame("line 95");
  run.add_site(trainer_record().key, {library_frame(run, "forward"), line}, rising(4 * kSiteMiB));
  run.add_site(trainer_record().key, {library_frame(run, "backward"), line}, rising(3 * kSiteMiB));
  run.add_site(trainer_record().key, {library_frame(run, "other")}, rising(5 * kSiteMiB));
  Options options;
  options.warmup.steps = 300.0;

  const RunSites sites = built(run, 300);
  const SiteRanking ranking = rank_sites(sites, options);

  ASSERT_EQ(ranking.sites.size(), 3U);
  ASSERT_EQ(ranking.lines.size(), 2U);
  const RankedLine& first = ranking.lines[0];
  EXPECT_EQ(sites.frames.at(ranking.sites[0].frames[0]).function, "other");  // the fastest stack
  EXPECT_THAT(first.sites, ElementsAre(1U, 2U));
  EXPECT_EQ(first.verdict, Verdict::kLeak);
  EXPECT_NEAR(*first.growth_bytes_per_step, 0.7 * kSiteMiB, 0.01 * kSiteMiB);
  EXPECT_EQ(first.live_bytes, 299 * 7 * kSiteMiB);
  EXPECT_NEAR(*first.share_of_growth, 7.0 / 12.0, 0.02);
  EXPECT_EQ(ranking.lines[1].sites.size(), 1U);
}

TEST(SiteLines, AreOnePerStackWhereNobodyKnowsThem) {
  SiteRun run = one_process();
  run.add_site(trainer_record().key, {library_frame(run, "a")}, rising(kSiteMiB));
  run.add_site(trainer_record().key, {library_frame(run, "b")}, rising(2 * kSiteMiB));

  const RunSites sites = built(run, 300);
  const SiteRanking ranking = rank_sites(sites, short_warmup());

  ASSERT_EQ(ranking.lines.size(), 2U);
  EXPECT_THAT(ranking.lines[0].sites, ElementsAre(0U));
  EXPECT_EQ(ranking.lines[0].growth_bytes_per_s, ranking.sites[0].growth_bytes_per_s);
}

// What one stack gives back another takes: a buffer that is reallocated from two places.
TEST(SiteLines, DoNotGrowWhenOneStackShrinksByWhatTheOtherGrows) {
  SiteRun run = one_process();
  const auto line = run.add_frame("line 7");
  run.add_site(trainer_record().key, {library_frame(run, "a"), line}, rising(kSiteMiB));
  run.add_site(trainer_record().key, {library_frame(run, "b"), line},
               [](double t_s) { return (400 - static_cast<std::uint64_t>(t_s)) * kSiteMiB; });

  const RunSites sites = built(run, 300);
  const SiteRanking ranking = rank_sites(sites, short_warmup());

  EXPECT_EQ(ranking.sites.at(0).verdict, Verdict::kLeak);
  ASSERT_EQ(ranking.lines.size(), 1U);
  EXPECT_FALSE(ranking.lines[0].grows());
}

// A leak that moves on from stack to stack is in none of them for long.
TEST(SiteLines, GrowWhenEachStackGrowsOnlyForAWhile) {
  SiteRun run = one_process();
  const auto line = run.add_frame("line 7");
  for (int i = 0; i < 10; ++i) {
    const double from_s = 30.0 * i;
    run.add_site(trainer_record().key, {library_frame(run, "caller " + std::to_string(i)), line},
                 [from_s](double t_s) {
                   return static_cast<std::uint64_t>(std::clamp(t_s - from_s, 0.0, 30.0)) *
                          kSiteMiB;
                 });
  }

  const RunSites sites = built(run, 300);
  const SiteRanking ranking = rank_sites(sites, short_warmup());

  EXPECT_EQ(ranking.lines.at(0).verdict, Verdict::kLeak);
  EXPECT_NEAR(ranking.lines[0].growth_bytes_per_s, kSiteMiB, 0.05 * kSiteMiB);
}

// A function of the user's that only passes memory on: what grows is told from what does not.
TEST(SiteLines, AreFurtherOutWhereTheInnermostIsNotToBlame) {
  SiteRun run = one_process();
  const auto take = run.add_frame("line of take()");
  const auto leak = run.add_frame("line that leaks");
  const ProcessKey key = trainer_record().key;
  run.add_site(key, {take, run.add_frame("line 1"), leak}, rising(kSiteMiB));
  run.add_site(key, {take, run.add_frame("line 2"), leak}, rising(2 * kSiteMiB));
  run.add_site(key, {take, run.add_frame("line that loads")}, constant(100 * kSiteMiB));

  const RunSites sites = built(run, 300);
  const SiteRanking ranking = rank_sites(sites, short_warmup());

  ASSERT_EQ(ranking.lines.size(), 2U);
  EXPECT_EQ(ranking.lines[0].name, in_program("line that leaks"));
  EXPECT_EQ(ranking.lines[0].sites.size(), 2U);
  EXPECT_NEAR(ranking.lines[0].growth_bytes_per_s, 3 * kSiteMiB, 0.1 * kSiteMiB);
  EXPECT_EQ(ranking.lines[1].name, in_program("line of take()"));
  EXPECT_EQ(ranking.lines[1].live_bytes, 100 * kSiteMiB);
}

// A container that grows takes a rare path now and then: too few blocks to grow by themselves.
TEST(SiteLines, TakeARareStackOfTheLeakAlong) {
  SiteRun run = one_process();
  const auto take = run.add_frame("line of take()");
  const auto leak = run.add_frame("line that leaks");
  const ProcessKey key = trainer_record().key;
  run.add_site(key, {take, library_frame(run, "append"), leak}, rising(kSiteMiB));
  run.add_site(key, {take, library_frame(run, "move all"), leak}, constant(2 * kSiteMiB));
  run.add_site(key, {take, run.add_frame("line that loads")}, constant(100 * kSiteMiB));

  const RunSites sites = built(run, 300);
  const SiteRanking ranking = rank_sites(sites, short_warmup());

  ASSERT_EQ(ranking.lines.size(), 2U);
  EXPECT_EQ(ranking.lines[0].name, in_program("line that leaks"));
  EXPECT_EQ(ranking.lines[0].sites.size(), 2U);
  EXPECT_EQ(ranking.lines[1].live_bytes, 100 * kSiteMiB);
}

// What stood still all the time was given back at the end: it still is not what leaks.
TEST(SiteLines, RememberWhatWasHeldBeforeTheProcessTidiedUp) {
  SiteRun run = one_process();
  const auto take = run.add_frame("line of take()");
  const ProcessKey key = trainer_record().key;
  run.add_site(key, {take, run.add_frame("line that leaks")}, rising(kSiteMiB));
  run.add_site(key, {take, run.add_frame("line that loads")},
               [](double t_s) { return t_s < 299.0 ? 100 * kSiteMiB : 0; });

  const RunSites sites = built(run, 300);

  EXPECT_EQ(rank_sites(sites, short_warmup()).lines.at(0).name, in_program("line that leaks"));
}

TEST(SiteLines, DoNotHideALeakBehindMuchThatStandsStill) {
  SiteRun run = one_process();
  const auto take = run.add_frame("line of take()");
  run.add_site(trainer_record().key, {library_frame(run, "a"), take}, rising(kSiteMiB / 64));
  run.add_site(trainer_record().key, {library_frame(run, "b"), take}, constant(5'000 * kSiteMiB));

  const RunSites sites = built(run, 300);
  const SiteRanking ranking = rank_sites(sites, short_warmup());

  ASSERT_EQ(ranking.lines.size(), 2U);
  EXPECT_EQ(ranking.lines[0].verdict, ranking.sites[0].verdict);
  EXPECT_EQ(ranking.lines[0].name, in_program("line of take()"));
  EXPECT_EQ(ranking.lines[0].sites.size(), 1U);
}

// Buffers that come and go hold next to nothing: the line stays the innermost one.
TEST(SiteLines, StayInnermostWhereLittleElseIsHeld) {
  SiteRun run = one_process();
  const auto take = run.add_frame("line of take()");
  const ProcessKey key = trainer_record().key;
  run.add_site(key, {take, run.add_frame("line 1")}, rising(kSiteMiB));
  run.add_site(key, {take, run.add_frame("line 2")}, constant(kSiteMiB));

  const RunSites sites = built(run, 300);
  const SiteRanking ranking = rank_sites(sites, short_warmup());

  ASSERT_EQ(ranking.lines.size(), 1U);
  EXPECT_EQ(ranking.lines[0].name, in_program("line of take()"));
}

TEST(SiteLines, KeepMemoryOfTheDeviceApart) {
  SiteRun run = one_process();
  const auto line = run.add_frame("line 7");
  run.add_site(trainer_record().key, {library_frame(run, "host"), line}, rising(kSiteMiB));
  run.add_site(trainer_record().key, {library_frame(run, "device"), line}, rising(kSiteMiB),
               AllocationKind::kCudaDevice);

  const RunSites sites = built(run, 300);

  EXPECT_EQ(rank_sites(sites, short_warmup()).lines.size(), 2U);
}

}  // namespace
}  // namespace tidemark::tracker
