// SPDX-License-Identifier: Apache-2.0
// How a recording that is played in the dashboard ends.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/dashboard/dashboard_session.h"

namespace tidemark {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using tests::TmuxSession;

class DashboardReplay : public tests::DashboardSession {
 protected:
  static std::string steps(const std::string& count) {
    return "(echo step,rss_mb; seq -f '%.0f,100' " + count + ") > log.csv; ";
  }
};

TEST_F(DashboardReplay, OfADamagedRecordingSaysSoAndFails) {
  const TmuxSession session(
      steps("10000") + tool() + " export log.csv --format tidemark -o run.tidemark; " +
          "head -c 4096 /dev/zero | dd of=run.tidemark bs=4096 seek=100 conv=notrunc; " + tool() +
          " monitor --replay run.tidemark --speed 1000000x",
      options());

  EXPECT_TRUE(session.shows("REPLAY 1e+06x ENDED"));
  EXPECT_TRUE(session.shows("error: run.tidemark: database disk image is malformed"));
  session.press({"q"});

  EXPECT_EQ(session.exit_code(), 3);
  EXPECT_TRUE(session.is_restored());
  EXPECT_TRUE(session.shows("error: run.tidemark: database disk image is malformed"));
}

TEST_F(DashboardReplay, TellsOnTheScreenWhatCouldNotBeRead) {
  const TmuxSession session("printf 'step,rss_mb\\n1,100\\nnonsense\\n2,100\\n' > log.csv; " +
                                tool() + " monitor --replay log.csv --speed 1000000x",
                            options());

  EXPECT_TRUE(session.shows("note: 1 of 3 lines could not be used"));
  session.press({"q"});

  EXPECT_EQ(session.exit_code(), 0);
  EXPECT_TRUE(session.shows("note: 1 of 3 lines could not be used"));
}

// Nobody sleeps then, and keys and signals wait for somebody who does.
TEST_F(DashboardReplay, ThatIsLateCanBeLeft) {
  const std::string replay = tool() + " monitor --replay log.csv --speed 1000000x";
  const TmuxSession by_key(steps("3000000") + replay, options());
  ASSERT_TRUE(by_key.shows("REPLAY"));
  by_key.press({"q"});
  EXPECT_EQ(by_key.exit_code(), 0);
  EXPECT_TRUE(by_key.shows("summary: "));
  EXPECT_THAT(by_key.screen(), Not(Contains(HasSubstr("summary: 3000000 steps"))));

  const TmuxSession by_signal(steps("3000000") + replay, options());
  ASSERT_TRUE(by_signal.shows("REPLAY"));
  send(by_signal, SIGTERM);
  EXPECT_EQ(by_signal.exit_code(), 0);
  EXPECT_THAT(by_signal.screen(), Not(Contains(HasSubstr("summary: 3000000 steps"))));
}

}  // namespace
}  // namespace tidemark
