// SPDX-License-Identifier: Apache-2.0
#include "live/line_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "common/fd.h"
#include "common/io.h"

namespace tidemark::live {
namespace {

class LineWriterTest : public testing::Test {
 protected:
  LineWriterTest() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    reader_.reset(ends[0]);
    sink_.reset(ends[1]);
  }
  // One line that no pipe takes at once.
  static std::string long_line(char c) { return std::string(200'000, c) + '\n'; }
  static bool has_ended(const LineWriter& writer) {
    pollfd ended{writer.ended_fd(), POLLIN, 0};
    const bool ends = ::poll(&ended, 1, 20'000) == 1;
    (void)writer.error();  // takes the lock: the thread sanitizer knows of no order by poll
    return ends;
  }
  std::string read_all() {
    sink_.reset();
    const auto text = read_to_end(reader_.get());
    return text ? *text : text.error().what;
  }

  Fd reader_;
  Fd sink_;
};

TEST_F(LineWriterTest, WritesAllInOrderBeforeItEnds) {
  auto writer = LineWriter::open(sink_.get());
  ASSERT_TRUE(writer);
  writer->submit("one\n");
  writer->submit_always("two\n");
  writer->submit("three\n");

  writer->close();

  ASSERT_TRUE(has_ended(*writer));
  EXPECT_EQ(read_all(), "one\ntwo\nthree\n");
  EXPECT_EQ(writer->take_dropped(), 0U);
  EXPECT_FALSE(writer->error());
}

TEST_F(LineWriterTest, DropsAndCountsLinesWhileNobodyReads) {
  auto writer = LineWriter::open(sink_.get(), /*max_waiting_bytes=*/100);
  ASSERT_TRUE(writer);
  for (int n = 0; n < 100; ++n) {
    writer->submit(long_line('x') + "second\n");  // returns at once
  }

  // One hangs in the pipe, one waits at most.
  EXPECT_GE(writer->take_dropped(), 2U * 98U);
  EXPECT_EQ(writer->take_dropped(), 0U);
  reader_.reset();
  EXPECT_TRUE(has_ended(*writer)) << "or its thread would write to whoever gets the number next";
}

TEST_F(LineWriterTest, KeepsWhatMustNotBeDroppedForAReaderThatComesBack) {
  auto writer = LineWriter::open(sink_.get(), /*max_waiting_bytes=*/100);
  ASSERT_TRUE(writer);
  for (int n = 0; n < 10; ++n) {
    writer->submit(long_line('x'));
  }
  writer->submit_always("summary\n");
  writer->close();

  std::string text;
  char buffer[4096];
  while (text.find("summary\n") == std::string::npos) {
    const auto n = read_some(reader_.get(), buffer);
    ASSERT_TRUE(n && *n > 0);
    text.append(buffer, *n);
  }

  EXPECT_TRUE(has_ended(*writer));
}

TEST_F(LineWriterTest, SaysThatNobodyReadsAnyMore) {
  auto writer = LineWriter::open(sink_.get());
  ASSERT_TRUE(writer);
  reader_.reset();

  writer->submit("into the void\n");

  ASSERT_TRUE(has_ended(*writer));
  ASSERT_TRUE(writer->error());
  EXPECT_EQ(writer->error()->sys_errno, EPIPE);
}

TEST_F(LineWriterTest, SaysThatTheDiskIsFull) {
  const auto full = open_file("/dev/full", O_WRONLY);
  ASSERT_TRUE(full);
  auto writer = LineWriter::open(full->get());
  ASSERT_TRUE(writer);

  writer->submit("lost\n");

  ASSERT_TRUE(has_ended(*writer));
  ASSERT_TRUE(writer->error());
  EXPECT_EQ(writer->error()->code, Errc::kNoSpace);
}

}  // namespace
}  // namespace tidemark::live
