// SPDX-License-Identifier: Apache-2.0
#include "live/monitor_view.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "common/fd.h"
#include "common/io.h"
#include "tests/unit/report/sample_tick.h"

namespace tidemark::live {
namespace {

using testing::HasSubstr;
using testing::Not;
using tests::kTrainer;
using tests::sample_record;
using tests::sample_tick;

// What the plain view prints for these ticks.
std::string printed(const std::vector<Tick>& ticks, double interval_s = 1.0) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd reader(ends[0]);
  Fd sink(ends[1]);
  auto writer = LineWriter::open(sink.get());
  EXPECT_TRUE(writer);
  const auto view = make_plain_view(*writer);
  RunInfo info;
  info.interval_s = interval_s;
  view->on_start(info);
  for (const Tick& tick : ticks) {
    view->on_tick(tick, kTrainer, sample_record);
  }
  writer->close();
  pollfd ended{writer->ended_fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&ended, 1, 20'000), 1);
  EXPECT_FALSE(writer->error());
  sink.reset();
  const auto text = read_to_end(reader.get());
  return text ? *text : text.error().what;
}

TEST(PlainView, SaysAtOnceWhatItCannotSee) {
  Tick first = sample_tick(0);
  first.losses = {{0, LossKind::kPssDenied, 2}};
  Tick second = sample_tick(1);
  second.losses = {{1, LossKind::kPssDenied, 3}, {1, LossKind::kMarkersLost, 4}};

  const std::string text = printed({first, second});

  EXPECT_THAT(text, HasSubstr("its footprint is estimated (2 times)\n00:00:00  tree "));
  EXPECT_THAT(text,
              HasSubstr("00:00:01  not seen: markers that were overwritten before they were read "
                        "(4 times)\n00:00:01  tree "));
  EXPECT_THAT(text, Not(HasSubstr("x3")));
}

TEST(PlainView, TellsLinesOfOneSecondApart) {
  Tick second = sample_tick(0.5);
  second.losses = {{0.5, LossKind::kMarkersLost, 4}};
  second.events = {{0.5, EventKind::kGap, {}, "no sample"}};

  EXPECT_THAT(printed({sample_tick(0.25), second}, 0.25),
              testing::ContainsRegex(
                  "\n00:00:00.25  tree [^\n]*\n"
                  "00:00:00.50  gap  no sample\n"
                  "00:00:00.50  not seen: markers that were overwritten before they were read "
                  "\\(4 times\\)\n"
                  "00:00:00.50  tree "));
}

}  // namespace
}  // namespace tidemark::live
