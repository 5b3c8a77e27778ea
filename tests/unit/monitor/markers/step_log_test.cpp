// SPDX-License-Identifier: Apache-2.0
#include "monitor/markers/step_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/temp_tree.h"

namespace tidemark::monitor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

StepPattern step_pattern() {
  auto pattern = StepPattern::compile(R"(step (\d+))");
  TIDEMARK_CHECK(pattern.has_value(), "the test's own pattern");
  return *pattern;
}

std::vector<std::int64_t> values(const std::vector<MarkerRecord>& records) {
  std::vector<std::int64_t> steps;
  for (const MarkerRecord& record : records) {
    steps.push_back(record.value);
  }
  return steps;
}

class StepScannerTest : public testing::Test {
 protected:
  std::vector<std::int64_t> feed(std::string_view bytes) {
    std::vector<MarkerRecord> found;
    scanner_.feed(bytes, 0, found);
    return values(found);
  }

  StepScanner scanner_{step_pattern()};
};

TEST_F(StepScannerTest, FindsStepsLineByLine) {
  EXPECT_THAT(feed("step 1 a\nnothing\nstep 2 b\n"), ElementsAre(1, 2));
}

TEST_F(StepScannerTest, EndsLinesAtCarriageReturnsToo) {
  EXPECT_THAT(feed("\rstep 1/9\rstep 2/9\rstep 3/9\r\n"), ElementsAre(1, 2, 3));
}

TEST_F(StepScannerTest, PutsLinesTogetherThatComeInPieces) {
  EXPECT_THAT(feed("st"), IsEmpty());
  EXPECT_THAT(feed("ep 12"), IsEmpty()) << "more digits may follow";
  EXPECT_THAT(feed("3\nste"), ElementsAre(123));
}

TEST_F(StepScannerTest, CountsAStepThatIsPrintedAgainOnce) {
  EXPECT_THAT(feed("step 5\rstep 5\rstep 5\rstep 6\rstep 5\r"), ElementsAre(5, 6, 5));
}

TEST_F(StepScannerTest, LooksAtTheBeginOfAHugeLineOnly) {
  const std::string huge(10'000'000, 'x');

  EXPECT_THAT(feed("step 1 " + huge), IsEmpty());
  EXPECT_THAT(feed(huge + " step 2\nstep 3\n"), ElementsAre(1, 3));
}

TEST_F(StepScannerTest, TakesBinaryOutput) {
  std::string bytes;
  for (int n = 0; n < 100'000; ++n) {
    bytes.push_back(static_cast<char>(n * 7919 >> 3));
  }

  feed(bytes);
  EXPECT_THAT(feed(std::string_view("\0\n step 4\n", 10)), ElementsAre(4));
}

TEST(StepScanner, CountsLinesThatThePatternGivesUp) {
  auto pattern = StepPattern::compile(R"((?:a+)+ step (\d+))");
  ASSERT_TRUE(pattern);
  StepScanner scanner(*pattern);
  std::vector<MarkerRecord> found;

  scanner.feed("a step 1\n" + std::string(4000, 'a') + " step x\na step 2\n", 0, found);

  EXPECT_THAT(values(found), SizeIs(2));
  EXPECT_EQ(scanner.take_lost().lines, 1U);
  EXPECT_EQ(scanner.take_lost().lines, 0U) << "told once";
}

TEST_F(StepScannerTest, ReadsALastLineWithoutEnd) {
  std::vector<MarkerRecord> found;
  scanner_.feed("step 9", 1.0, found);
  scanner_.end(2.5, found);

  ASSERT_THAT(values(found), ElementsAre(9));
  EXPECT_EQ(found[0].t_s, 2.5);
  EXPECT_EQ(found[0].key.pid, 0);
  EXPECT_EQ(found[0].kind, MarkerKind::kStep);
}

class LogFollowerTest : public testing::Test {
 protected:
  void append(std::string_view text) const {
    std::ofstream(path_, std::ios::app | std::ios::binary) << text;
  }

  LogFollower follow() const {
    auto follower = LogFollower::open(path_, step_pattern());
    TIDEMARK_CHECK(follower.has_value(), "cannot follow the test's own log");
    return std::move(*follower);
  }

  static std::vector<std::int64_t> poll(LogFollower& follower) {
    std::vector<MarkerRecord> found;
    follower.poll(1.0, found);
    return values(found);
  }

  tests::TempTree directory_;
  const std::string path_ = directory_.path("train.log");
};

TEST_F(LogFollowerTest, StartsAtTheEndOfALogThatExists) {
  append("step 1\n");
  LogFollower follower = follow();
  append("step 2\n");

  EXPECT_THAT(poll(follower), ElementsAre(2));
  EXPECT_THAT(poll(follower), IsEmpty());
}

TEST_F(LogFollowerTest, ReadsALogThatAppearsLaterFromItsBegin) {
  LogFollower follower = follow();
  EXPECT_THAT(poll(follower), IsEmpty());

  append("step 1\nstep 2\n");

  EXPECT_THAT(poll(follower), ElementsAre(1, 2));
}

TEST_F(LogFollowerTest, GoesOnAfterTruncation) {
  LogFollower follower = follow();
  append("a long line\nstep 1\nste");
  poll(follower);

  std::filesystem::resize_file(path_, 0);
  append("step 7\n");

  EXPECT_THAT(poll(follower), ElementsAre(7));
}

TEST_F(LogFollowerTest, ReadsTheRestOfALogThatIsRotated) {
  LogFollower follower = follow();
  append("step 1\n");
  poll(follower);

  append("step 2\n");
  std::filesystem::rename(path_, path_ + ".1");
  append("step 3\n");

  EXPECT_THAT(poll(follower), ElementsAre(2, 3));
}

TEST_F(LogFollowerTest, StaysWithARotatedLogUntilItsSuccessorAppears) {
  LogFollower follower = follow();
  append("step 1\n");
  poll(follower);
  std::filesystem::rename(path_, path_ + ".1");
  std::ofstream(path_ + ".1", std::ios::app) << "step 2\n";
  EXPECT_THAT(poll(follower), ElementsAre(2));

  append("step 3\n");

  EXPECT_THAT(poll(follower), ElementsAre(3));
}

// "step 1\nstep 2\n..." of `count` steps.
std::string log_of(std::size_t count) {
  std::string text;
  for (std::size_t n = 1; n <= count; ++n) {
    text += "step " + std::to_string(n) + "\n";
  }
  return text;
}

TEST_F(LogFollowerTest, TakesABoundedNumberOfStepsAtOnceAndGoesOnThere) {
  constexpr std::size_t kMost = LogFollower::kMaxStepsPerPoll;
  LogFollower follower = follow();
  append(log_of(kMost + 2));

  EXPECT_THAT(poll(follower), SizeIs(kMost));
  EXPECT_THAT(poll(follower), ElementsAre(kMost + 1, kMost + 2));
  EXPECT_THAT(poll(follower), IsEmpty());
}

TEST_F(LogFollowerTest, TakesABoundedNumberOfBytesAtOnceAndGoesOnThere) {
  LogFollower follower = follow();
  append("step 1\n" + std::string(LogFollower::kMaxBytesPerPoll, '\n') + "step 2\n");

  EXPECT_THAT(poll(follower), ElementsAre(1));
  EXPECT_THAT(poll(follower), ElementsAre(2));
}

TEST_F(LogFollowerTest, TakesABoundedNumberOfCostlyLinesAtOnceAndGoesOnThere) {
  auto follower = LogFollower::open(path_, *StepPattern::compile(R"((?:a+)+ step (\d+))"));
  ASSERT_TRUE(follower);
  constexpr std::uint64_t kLines = 200;
  for (std::uint64_t line = 0; line < kLines; ++line) {
    append(std::string(40, 'a') + " step x\n");
  }
  append("a step 1\n");

  EXPECT_THAT(poll(*follower), IsEmpty());
  std::uint64_t lost = follower->take_lost().lines;
  EXPECT_LT(lost, kLines / 2);
  std::vector<std::int64_t> steps;
  for (int polls = 0; polls < 10 && steps.empty(); ++polls) {
    steps = poll(*follower);
    lost += follower->take_lost().lines;
  }

  EXPECT_THAT(steps, ElementsAre(1));
  EXPECT_EQ(lost, kLines);
}

TEST_F(LogFollowerTest, ReadsARotatedLogToItsEndBeforeTheNext) {
  constexpr std::size_t kMost = LogFollower::kMaxStepsPerPoll;
  LogFollower follower = follow();
  append(log_of(1));
  poll(follower);
  append(log_of(kMost + 2));
  std::filesystem::rename(path_, path_ + ".1");
  append("step 7\n");

  EXPECT_THAT(poll(follower), SizeIs(kMost));
  EXPECT_THAT(poll(follower), ElementsAre(kMost + 2, 7));
}

TEST_F(LogFollowerTest, RefusesWhatIsNoFile) {
  ::mkfifo(path_.c_str(), 0600);

  const auto follower = LogFollower::open(path_, step_pattern());

  ASSERT_FALSE(follower);
  EXPECT_THAT(follower.error().what, testing::HasSubstr("train.log is not a regular file"));
}

TEST_F(LogFollowerTest, RefusesALogInAFolderThatIsNone) {
  append("x");

  EXPECT_FALSE(LogFollower::open(path_ + "/below", step_pattern()));
}

}  // namespace
}  // namespace tidemark::monitor
