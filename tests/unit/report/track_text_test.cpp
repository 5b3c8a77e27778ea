// SPDX-License-Identifier: Apache-2.0
#include "report/track_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/exit_code.h"
#include "common/text.h"
#include "report/track_words.h"
#include "tests/support/golden.h"
#include "tests/unit/report/sample_verdict.h"

namespace tidemark::report {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using tests::difference_from_golden;
using tests::growing_run;
using tests::kGiBf;
using tests::kMiBf;
using tests::leaking_run;
using tests::stable_run;
using tracker::Axis;
using tracker::Verdict;

TEST(TrackText, LooksAsInTheGoldenFiles) {
  EXPECT_EQ(difference_from_golden("track/leak.txt", track_text(leaking_run(), Glyphs::kAscii)),
            "");
  EXPECT_EQ(difference_from_golden("track/stable.txt", track_text(stable_run(), Glyphs::kUtf8)),
            "");
  EXPECT_EQ(difference_from_golden("track/growing.txt", track_text(growing_run(), Glyphs::kAscii)),
            "");
}

TEST(TrackText, FitsIntoEightyColumnsAndEscapesNames) {
  const std::string text = track_text(leaking_run(), Glyphs::kAscii);

  EXPECT_THAT(text, HasSubstr("\\x1b[2J"));
  std::string_view rest = text;
  while (const auto line = next_line(rest)) {
    EXPECT_LE(line->size(), kLineColumns) << *line;
    for (const char c : *line) {
      EXPECT_TRUE(c >= ' ' && c <= '~') << *line;
    }
  }
}

TEST(TrackText, SaysFirstWhatWhoHowFastSinceAndUntilWhen) {
  const std::string answer = answer_text(leaking_run());

  EXPECT_THAT(answer, StartsWith("LEAK: footprint of trainer, pid 1240 (py"));
  EXPECT_THAT(answer, HasSubstr("2.00 MiB/step, 120 MiB/min since step 400."));
  EXPECT_THAT(answer,
              HasSubstr("the limit of 32.0 GiB (cgroup v2 /job) in 3 h 53 min to 4 h 26 min"));
}

TEST(TrackText, GivesTheIntervalOfALeaksRate) {
  const tracker::JudgedRun result = leaking_run();

  EXPECT_THAT(pattern_text(result.verdict->answer().series.patterns[1], Axis::kSteps),
              HasSubstr("1.90 MiB/step to 2.10 MiB/step"));
  EXPECT_THAT(pattern_text(result.verdict->answer().series.patterns[1], Axis::kTime),
              HasSubstr("114 MiB/min to 126 MiB/min"));
}

TEST(TrackText, NamesTheCarrierOfAGroupsGrowth) {
  tracker::JudgedRun result = leaking_run();
  result.verdict->where = 0;
  result.verdict->carrier = 2;
  result.verdict->carrier_share = 0.93;

  EXPECT_THAT(answer_text(result), StartsWith("LEAK in trainer, pid 1240 (py"));
  EXPECT_THAT(answer_text(result), HasSubstr(": footprint of the whole tree grew by"));
  EXPECT_THAT(answer_text(result), HasSubstr("93 % of the growth is there."));
}

TEST(TrackText, CountsCalmProcessesInsteadOfListingThem) {
  tracker::JudgedRun result = leaking_run();
  for (int i = 0; i < 3; ++i) {
    result.run.tracks.push_back(
        tests::track_of(tracker::TrackKind::kProcess, Role::kCompileWorker, 2000 + i));
    result.verdict->tracks.push_back({3U + static_cast<std::size_t>(i), tracker::Metric::kFootprint,
                                      tests::reading_of(Verdict::kStable, Axis::kSteps,
                                                        [&](double) { return (i + 1) * kMiBf; })});
  }

  const std::string text = track_text(result, Glyphs::kAscii);

  EXPECT_THAT(text, HasSubstr("stable  3 single processes\n"));
  EXPECT_THAT(text, Not(HasSubstr("pid 2001")));

  for (auto track = result.verdict->tracks.end() - 2; track != result.verdict->tracks.end();
       ++track) {
    track->series.undetermined = true;
  }
  const std::string early = track_text(result, Glyphs::kAscii);
  EXPECT_THAT(early, HasSubstr("stable  1 single process\n"));
  EXPECT_THAT(early, HasSubstr("too early 2 single processes\n"));
}

TEST(TrackText, SaysHowLikelyALeakIsWhereNobodyCanTellYet) {
  tracker::JudgedRun result = growing_run();
  tracker::SeriesVerdict& reading = result.verdict->tracks[0].series;
  EXPECT_THAT(answer_text(result), StartsWith("LIKELY WARM-UP (75 %): "));
  EXPECT_THAT(answer_text(result), HasSubstr(", ever more slowly. A leak would also fit."));

  reading.likelihood = tracker::LeakLikelihood{0.8, tracker::RiseForm::kStraight, {870.0, {}}};
  EXPECT_THAT(answer_text(result), StartsWith("LIKELY LEAK (80 %): "));
  EXPECT_THAT(answer_text(result), HasSubstr(", straight for 2 min 00 s. Warm-up would also fit."));
  EXPECT_EQ(short_verdict(reading, Verdict::kGrowing), "LIKELY LEAK 80 %");

  reading.likelihood->chance = 0.5;
  EXPECT_THAT(answer_text(result), StartsWith("CANNOT TELL YET: "));
  EXPECT_EQ(short_verdict(reading, Verdict::kGrowing), "GROWING");
}

TEST(TrackText, GivesNoRateAndNoForecastForOneJump) {
  tracker::JudgedRun result = growing_run();
  tracker::SeriesVerdict& reading = result.verdict->tracks[0].series;
  reading.forecast.asymptote_bytes.reset();
  reading.forecast.in_s_low = 3600.0;
  ASSERT_THAT(answer_text(result), HasSubstr("At this rate"));
  reading.likelihood = tracker::LeakLikelihood{0.3, tracker::RiseForm::kUneven, {0.0, {}}};
  for (tracker::Pattern& pattern : reading.patterns) {
    pattern.rate = {};
    pattern.rate.bytes_per_s = 0.0;
    pattern.rate.high_bytes_per_s = 1e6;
  }

  EXPECT_THAT(answer_text(result), ContainsRegex("grew by .* since .*, most of it in one jump\\."));
  EXPECT_THAT(answer_text(result), Not(HasSubstr("At this rate")));
}

TEST(TrackText, SaysWhereGrowthByCopyingEnds) {
  tracker::JudgedRun result = growing_run();
  result.run.tracks[0].kind = tracker::TrackKind::kRole;
  result.run.tracks[0].role = Role::kDataloaderWorker;
  result.run.tracks[0].most_processes = 4;
  result.verdict->tracks[0].copy_on_write = true;

  EXPECT_THAT(answer_text(result),
              StartsWith("GROWING, BOUNDED near 2.50 GiB (copy-on-write in 4 workers): "));
  EXPECT_THAT(answer_text(result), HasSubstr("That is below the limit of 8.00 GiB."));
}

TEST(TrackText, TellsOfALateRiseAndClaimsNothingAboutIt) {
  tracker::JudgedRun result = stable_run();
  tracker::SeriesVerdict& reading = result.verdict->tracks[0].series;
  tracker::Pattern rise;
  rise.kind = tracker::PatternKind::kLateRise;
  rise.from.t_s = 900.0;
  rise.rate.bytes_per_s = 45 * kMiBf / 60.0;
  reading.patterns.push_back(rise);
  reading.tested_from.t_s = 0.0;
  reading.tested_to.t_s = 900.0;

  const std::string text = answer_text(result);
  EXPECT_THAT(text, StartsWith("No leak so far, stable: "));
  EXPECT_THAT(text, HasSubstr("It has been rising by 45.0 MiB/min since 00:15:00, too little yet "
                              "to count."));
  EXPECT_THAT(text, HasSubstr(" from 00:00:00 to 00:15:00 would have been seen."));

  reading.tested_to.t_s = 990.0;  // the rise is all that there is
  EXPECT_THAT(answer_text(result), Not(HasSubstr("would have been seen")));
}

TEST(TrackText, NamesTheHighestSpikeWhereItStandsOut) {
  tracker::JudgedRun result = stable_run();
  result.verdict->verdict = Verdict::kSpikes;
  tracker::Pattern spikes;
  spikes.kind = tracker::PatternKind::kSpikes;
  spikes.count = 5;
  spikes.height_bytes = 270 * kMiBf;
  spikes.highest_bytes = 600 * kMiBf;
  result.verdict->tracks[0].series.patterns.push_back(spikes);

  EXPECT_THAT(answer_text(result),
              HasSubstr("has 5 spikes of about 270 MiB, the highest 600 MiB; its floor"));
}

TEST(TrackText, SaysThatTooFewSamplesProveNothing) {
  tracker::JudgedRun result = stable_run();
  tracker::SeriesVerdict& reading = result.verdict->tracks[0].series;
  reading.undetermined = true;
  reading.samples = 4;
  reading.needs = tracker::Needs{{}, {}, 2.0};

  EXPECT_THAT(answer_text(result), HasSubstr("CANNOT TELL YET"));
  EXPECT_THAT(answer_text(result), HasSubstr(" in 4 samples: too early to tell. It needs "
                                             "about 2 more samples to decide."));
}

TEST(TrackText, CountsTheMomentsOfTooFewSamplesAndNamesTheirSpike) {
  tracker::JudgedRun result = stable_run();
  result.verdict->verdict = Verdict::kSpikes;
  tracker::SeriesVerdict& reading = result.verdict->tracks[0].series;
  reading.undetermined = true;
  reading.samples = 3;
  reading.evidence = {{tracker::EvidenceKind::kPoints, 1.0, 6.0}};
  tracker::Pattern spike;
  spike.kind = tracker::PatternKind::kSpikes;
  spike.count = 1;
  spike.height_bytes = 4 * tests::kGiBf;
  reading.patterns = {spike};

  EXPECT_THAT(answer_text(result), HasSubstr("has 1 spike of about 4.00 GiB and "));
  EXPECT_THAT(answer_text(result), HasSubstr(" in 3 samples of 1 moment: too early to tell."));
}

TEST(TrackText, SaysThatTheFloorUnderSpikesGrewBefore) {
  tracker::JudgedRun result = leaking_run();
  result.verdict->verdict = Verdict::kSpikes;

  EXPECT_THAT(answer_text(result), HasSubstr("; its floor grew by 1.00 GiB until step 200 and "));
}

TEST(TrackText, SaysThatTheLimitIsExceededAlready) {
  tracker::JudgedRun result = leaking_run();
  tracker::Forecast& forecast = result.verdict->tracks[2].series.forecast;
  forecast.in_s_low = forecast.in_s_high = 0.0;

  EXPECT_THAT(answer_text(result),
              HasSubstr("The limit of 32.0 GiB (cgroup v2 /job) is exceeded already."));
  EXPECT_THAT(answer_text(result), Not(HasSubstr("At this rate")));
}

TEST(TrackText, SaysWhichOptionsCouldNotBeCounted) {
  tracker::JudgedRun result = stable_run();
  tracker::SeriesVerdict& reading = result.verdict->tracks[0].series;
  reading.warmup_ignored = true;
  reading.min_leak_ignored = true;

  const std::string text = track_text(result, Glyphs::kAscii);

  EXPECT_THAT(text, HasSubstr("note: --warmup counts steps, and too few are known here: the"));
  EXPECT_THAT(text, HasSubstr("note: --min-leak counts steps, and too few are known here: the"));
}

TEST(TrackText, SaysWhichMetricsThereAreInstead) {
  tracker::JudgedRun result;
  result.asked_metric = tracker::Metric::kPss;
  result.run.tracks.push_back(tests::track_of(tracker::TrackKind::kTree, Role::kOther));
  result.run.tracks[0].of(tracker::Metric::kRss).add(0.0, tracker::kUnknown, 1.0);

  EXPECT_EQ(answer_text(result), "CANNOT TELL: there is no sample of pss to judge, only of rss.");
}

TEST(TrackText, SaysFromWhereToWhereTheDataAre) {
  tracker::JudgedRun result = stable_run();
  result.verdict->tracks[0].series.end.t_s = 1000.0;  // the last stretch begins at 990

  const std::string text = track_text(result, Glyphs::kAscii);

  EXPECT_THAT(text, HasSubstr("00:00:00 to 00:16:40"));
  EXPECT_THAT(text, Not(HasSubstr("00:16:30")));
}

TEST(TrackText, SaysWarmUpAndSpikesWithTheirNumbers) {
  tracker::JudgedRun warmup = leaking_run();
  warmup.verdict->verdict = Verdict::kWarmup;
  tracker::JudgedRun spikes = leaking_run();
  spikes.verdict->verdict = Verdict::kSpikes;

  EXPECT_THAT(answer_text(warmup), HasSubstr("grew by 1.00 GiB until step 200 and stands at"));
  EXPECT_THAT(answer_text(spikes), HasSubstr("has 9 spikes of about 64.0 MiB, every 100 steps"));
}

TEST(TrackText, SaysThatAStableCurveDrifts) {
  tracker::JudgedRun result = stable_run();
  tracker::Pattern drift;
  drift.kind = tracker::PatternKind::kDrift;
  drift.rate.bytes_per_s = 3000.0;
  result.verdict->tracks[0].series.patterns = {drift};

  EXPECT_THAT(answer_text(result), HasSubstr(" is at 2.00 GiB."));
  EXPECT_THAT(track_text(result, Glyphs::kAscii), Not(HasSubstr("stood still")));

  EXPECT_THAT(answer_text(result), HasSubstr("It drifts by 176 KiB/min, too slow to be called"));
}

TEST(TrackText, SaysThatNothingWasSeen) {
  tracker::JudgedRun nothing;
  nothing.run.losses = {{"status_unreadable", 7}};

  EXPECT_EQ(track_text(nothing, Glyphs::kAscii),
            "CANNOT TELL: there is no sample to judge.\nnot seen a process that could not be read: "
            "its last values stand (7 times)\n");
}

TEST(TrackText, GivesSmallRatesForALongerTime) {
  tracker::GrowthRate rate;
  rate.bytes_per_s = 100.0;
  rate.bytes_per_step = 10.0;

  EXPECT_EQ(rate_text(rate, Axis::kSteps), "9.77 KiB/1000 steps, 352 KiB/h");
  EXPECT_EQ(rate_text(rate, Axis::kTime), "352 KiB/h, 9.77 KiB/1000 steps");
}

TEST(TrackText, ShowsOneLineOfALiveRun) {
  EXPECT_EQ(track_line(leaking_run(), 3725.0),
            "01:02:05  step 990  floor 3.15 GiB  ceiling 3.21 GiB  +120 MiB/min  leak\n");
  EXPECT_EQ(track_line(growing_run(), 12.0),
            "00:00:12  floor 1.97 GiB  ceiling 2.03 GiB  +60.0 MiB/min  growing, leak 25 % likely "
            "(needs about 25 min more)\n");
  EXPECT_EQ(track_line(tracker::JudgedRun{}, 1.0), "00:00:01  nothing to judge yet\n");
}

TEST(TrackText, DoesNotCallStableWhatIsTooEarlyToTell) {
  tracker::JudgedRun result = stable_run();
  tracker::SeriesVerdict& reading = result.verdict->tracks[0].series;
  reading.undetermined = true;
  reading.samples = 4;
  reading.needs = tracker::Needs{31 * 60.0, {}, {}};
  reading.first_floor_bytes = 2 * tests::kGiBf;
  reading.last_floor_bytes = 2 * tests::kGiBf + 20 * kMiBf;

  const std::string line = track_line(result, 3.0);
  EXPECT_THAT(line, HasSubstr("  too early (needs about 31 min more)\n"));
  EXPECT_THAT(line, Not(HasSubstr("stable")));
  EXPECT_THAT(answer_text(result), HasSubstr("rose by 20.0 MiB to 2.02 GiB in 4 samples: too early "
                                             "to tell."));
  EXPECT_EQ(short_finding(reading, Verdict::kStable), "+20.0 MiB so far; needs about 31 min more");
  EXPECT_THAT(track_text(result, Glyphs::kAscii), Not(HasSubstr("no growth")));

  reading.last_floor_bytes = reading.first_floor_bytes;
  EXPECT_THAT(answer_text(result), HasSubstr("is at 2.00 GiB in 4 samples: too early to tell."));
}

TEST(JudgedRun, ExitsWithOneForALeakFourWhenNobodyCanTellElseZero) {
  EXPECT_EQ(tracker::exit_code_of(leaking_run()), kExitLeak);
  EXPECT_EQ(tracker::exit_code_of(growing_run()), kExitUndetermined);
  EXPECT_EQ(tracker::exit_code_of(stable_run()), kExitOk);
  EXPECT_EQ(tracker::exit_code_of(tracker::JudgedRun{}), kExitUndetermined);
  tracker::JudgedRun few = stable_run();
  few.verdict->tracks[0].series.undetermined = true;
  EXPECT_EQ(tracker::exit_code_of(few), kExitUndetermined);
}

TEST(ChartText, DrawsNothingFromTwoPoints) {
  tracker::SeriesVerdict reading =
      tests::reading_of(Verdict::kStable, Axis::kTime, [](double) { return kGiBf; });
  reading.floor.resize(2);

  EXPECT_EQ(chart_text(reading, Glyphs::kAscii), "");
}

TEST(ChartText, MarksWhatBeginsWithTheFirstStretch) {
  tracker::SeriesVerdict reading = growing_run().verdict->tracks[0].series;
  for (tracker::FloorPoint& point : reading.floor) {
    point.x += 5.0;  // its middle
  }

  EXPECT_THAT(chart_text(reading, Glyphs::kAscii), HasSubstr(" +G-"));
}

TEST(ChartText, DoesNotMakeNoiseLookLikeGrowth) {
  tracker::SeriesVerdict reading = tests::reading_of(Verdict::kStable, Axis::kTime, [](double x) {
    return 10 * kGiBf + x * 1024;  // 0.01 %
  });

  const std::string chart = chart_text(reading, Glyphs::kAscii);

  std::string_view rest = chart;
  while (const auto line = next_line(rest)) {
    const auto first = line->find('#');
    if (first != std::string_view::npos && line->find('|') != std::string_view::npos) {
      EXPECT_EQ(first, 11U) << *line;  // a floor that is level from the left to the right
    }
  }
}

TEST(ParseLimit, IsMoreThanNothing) {
  EXPECT_EQ(*tracker::parse_limit("32KiB"), 32768U);
  EXPECT_FALSE(tracker::parse_limit("0"));
  EXPECT_FALSE(tracker::parse_limit("much"));
}

TEST(ParseWarmup, TakesTimeStepsAndAuto) {
  EXPECT_EQ(tracker::parse_warmup("10min")->seconds, 600.0);
  EXPECT_EQ(tracker::parse_warmup("200steps")->steps, 200.0);
  EXPECT_EQ(tracker::parse_warmup("200 steps")->steps, 200.0);
  EXPECT_TRUE(tracker::parse_warmup("auto")->automatic());
  for (const char* bad : {"", "steps", "-5steps", "5x", "soon"}) {
    EXPECT_FALSE(tracker::parse_warmup(bad)) << bad;
  }
}

TEST(ParseWarmup, AsksWhetherABareNumberCountsStepsOrTime) {
  EXPECT_EQ(tracker::parse_warmup("0")->seconds, 0.0);
  const auto warmup = tracker::parse_warmup("200");
  ASSERT_FALSE(warmup);
  EXPECT_EQ(warmup.error().what, "--warmup: '200' has no unit: say 200steps, 200s or 200min");
}

}  // namespace
}  // namespace tidemark::report
