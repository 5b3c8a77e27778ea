// SPDX-License-Identifier: Apache-2.0
#include "recording/run_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recording/run_writer.h"
#include "tests/support/temp_tree.h"

namespace tidemark::recording {
namespace {

using testing::SizeIs;

class RunWindow : public testing::Test {
 protected:
  // A sample per second; the footprint is the second, in bytes.
  void SetUp() override {
    auto writer = RunWriter::create(path_, {});
    ASSERT_TRUE(writer);
    ASSERT_TRUE((*writer)->begin({}));
    for (int second = 0; second < 1000; ++second) {
      Tick tick;
      tick.t_s = second;
      tick.tree.footprint_bytes = static_cast<std::uint64_t>(second);
      ASSERT_TRUE((*writer)->add(tick));
    }
    ASSERT_TRUE((*writer)->end(1000.0));
  }

  const tests::TempTree tree_;
  const std::string path_ = tree_.path("run.tidemark");
};

TEST_F(RunWindow, HasTheSamplesBetweenTwoMoments) {
  const auto points = read_tree_window(path_, 100.0, 110.0, 100);

  ASSERT_TRUE(points) << points.error().what;
  ASSERT_THAT(*points, SizeIs(11));
  EXPECT_DOUBLE_EQ(points->front().t_s, 100.0);
  EXPECT_DOUBLE_EQ(points->back().max_bytes, 110.0);
}

TEST_F(RunWindow, MergesManySamplesAndKeepsTheirExtremes) {
  const auto points = read_tree_window(path_, 0.0, 1000.0, 10);

  ASSERT_TRUE(points) << points.error().what;
  ASSERT_THAT(*points, SizeIs(10));
  EXPECT_DOUBLE_EQ((*points)[1].min_bytes, 100.0);
  EXPECT_DOUBLE_EQ((*points)[1].max_bytes, 199.0);
}

TEST_F(RunWindow, OutsideOfTheRunIsEmpty) {
  const auto after = read_tree_window(path_, 5000.0, 6000.0, 10);
  const auto before = read_tree_window(path_, -100.0, -50.0, 10);

  ASSERT_TRUE(after && before);
  EXPECT_THAT(*after, SizeIs(0));
  EXPECT_THAT(*before, SizeIs(0));
}

TEST_F(RunWindow, OfNoFileIsAnError) {
  EXPECT_FALSE(read_tree_window(tree_.path("none"), 0.0, 1.0, 10));
}

}  // namespace
}  // namespace tidemark::recording
