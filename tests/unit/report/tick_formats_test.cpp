// SPDX-License-Identifier: Apache-2.0
#include "report/tick_formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/report/sample_tick.h"

namespace tidemark::report {
namespace {

using testing::HasSubstr;
using testing::Not;
using tests::kWorker;
using tests::sample_record;
using tests::sample_tick;

TEST(TickJson, CarriesTreeRolesAndProcesses) {
  Tick tick = sample_tick(1.5);
  tick.step = 7;

  const std::string json = tick_json(tick, sample_record);

  EXPECT_THAT(json, testing::StartsWith(R"({"schema":1,"kind":"tick","t_s":1.5,)"));
  EXPECT_THAT(json, HasSubstr(R"("step":7,"epoch":null,)"));
  EXPECT_THAT(json, HasSubstr(R"("tree":{"processes":2,"rss_bytes":440401920,)"
                              R"("footprint_bytes":335544320,"footprint_held":false,)"
                              R"("pss_bytes":null,)"));
  EXPECT_THAT(json, HasSubstr(R"("roles":{"trainer":{"count":1,)"));
  EXPECT_THAT(json, HasSubstr(R"({"pid":1240,"start_ticks":500,"ppid":1,"role":"trainer",)"));
  EXPECT_THAT(json, HasSubstr(R"("rss_anon_bytes":314572800)"));
}

TEST(TickJson, UnknownIsNull) {
  const std::string json = tick_json(sample_tick(0), [](const ProcessKey&) { return nullptr; });

  EXPECT_THAT(json, HasSubstr(R"("role":null,"comm":null)"));
  EXPECT_THAT(json, HasSubstr(R"("swap_bytes":null)"));
  EXPECT_THAT(json, HasSubstr(R"("system":null,"gpus":[],"markers":[],"losses":{}})"));
}

TEST(TickJson, HostileNamesStayInsideTheirString) {
  const std::string json = tick_json(sample_tick(0), sample_record);

  EXPECT_THAT(json, HasSubstr(R"("comm":"evil\u001b[2J")"));
  EXPECT_THAT(json, Not(HasSubstr("\x1b")));
}

TEST(TickJson, AGaugeHasItsNameAndWhatItShows) {
  Tick tick = sample_tick(1.0);
  tick.markers = {{0.5, {1240, 500}, MarkerKind::kGauge, 4096, std::string(kTorchReservedGauge)},
                  {0.6, {}, MarkerKind::kEpoch, 2, ""},
                  {0.7, {}, MarkerKind::kPhaseEnd, 0, "eval"}};

  EXPECT_THAT(tick_json(tick, sample_record),
              HasSubstr(R"("markers":[{"t_s":0.5,"marker":"gauge","pid":1240,)"
                        R"("name":"torch_gpu_reserved_bytes","value":4096},)"
                        R"({"t_s":0.6,"marker":"epoch","value":2},)"
                        R"({"t_s":0.7,"marker":"phase_end","name":"eval"}])"));
}

TEST(EventJson, NamesTheProcessWhereThereIsOne) {
  EXPECT_EQ(event_json({2, EventKind::kExec, kWorker, "a -> b"}, sample_record),
            R"({"schema":1,"kind":"event","t_s":2,"event":"exec","pid":1241,"start_ticks":510,)"
            R"("ppid":1240,"role":"compile_worker","comm":"evil\u001b[2J","detail":"a -> b"})");
  EXPECT_EQ(event_json({2, EventKind::kGap, {}, "no sample"}, sample_record),
            R"({"schema":1,"kind":"event","t_s":2,"event":"gap","detail":"no sample"})");
}

TEST(EventJson, CountsTheProcessesOfAnOomKill) {
  EXPECT_EQ(event_json({2, EventKind::kOomKill, {}, "three", 3}, sample_record),
            R"({"schema":1,"kind":"event","t_s":2,"event":"oom_kill","detail":"three","count":3})");
}

TEST(SummaryJson, PutsTheTotalsUnderSummary) {
  RunSummary summary;
  summary.add(sample_tick(0));
  summary.add(sample_tick(10, 400));

  const std::string json = summary_json(summary);

  EXPECT_THAT(json, HasSubstr(R"("kind":"summary","t_s":10,"summary":{"ticks":2,)"));
  EXPECT_THAT(json, HasSubstr(R"("growth_bytes":104857600,"growth_bytes_per_s":10485760,)"));
  EXPECT_THAT(json, HasSubstr(R"("roles":{"trainer":{"most_processes":1,)"));
}

}  // namespace
}  // namespace tidemark::report
