// SPDX-License-Identifier: Apache-2.0
#include "common/io.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>

namespace tidemark {
namespace {

// A file system of one file that misbehaves: interrupts every other call, gives one byte at a time.
std::string g_content;
std::string g_written;
std::size_t g_position = 0;
int g_calls = 0;
int g_fail_with = 0;

bool interrupted() {
  if (++g_calls % 2 == 1) {
    errno = EINTR;
    return true;
  }
  return false;
}

ssize_t failing() {
  errno = g_fail_with;
  return -1;
}

ssize_t flaky_read(int, void* buffer, std::size_t size) {
  if (interrupted()) {
    return -1;
  }
  if (g_position == g_content.size() || size == 0) {
    return 0;
  }
  std::memcpy(buffer, &g_content[g_position++], 1);
  return 1;
}

ssize_t flaky_pread(int, void* buffer, std::size_t size, off_t offset) {
  if (interrupted()) {
    return -1;
  }
  const auto at = static_cast<std::size_t>(offset);
  if (at >= g_content.size() || size == 0) {
    return 0;
  }
  std::memcpy(buffer, &g_content[at], 1);
  return 1;
}

ssize_t flaky_write(int, const void* buffer, std::size_t size) {
  if (interrupted()) {
    return -1;
  }
  if (g_fail_with != 0) {
    return failing();
  }
  const std::size_t n = std::min<std::size_t>(size, 1);
  g_written.append(static_cast<const char*>(buffer), n);
  return static_cast<ssize_t>(n);
}

int flaky_openat(int, const char*, int, unsigned) {
  if (interrupted()) {
    return -1;
  }
  return static_cast<int>(failing());
}

class FlakySystem : public testing::Test {
 protected:
  FlakySystem()
      : previous_(replace_syscalls({flaky_openat, flaky_read, flaky_pread, flaky_write})) {
    g_content.clear();
    g_written.clear();
    g_position = 0;
    g_calls = 0;
    g_fail_with = 0;
  }
  ~FlakySystem() override { replace_syscalls(previous_); }

 private:
  Syscalls previous_;
};

TEST_F(FlakySystem, ReadToEndLoopsOnEintrAndShortCounts) {
  g_content = std::string(10'000, 'x') + "end";

  const auto text = read_to_end(7);

  ASSERT_TRUE(text);
  EXPECT_EQ(*text, g_content);
}

TEST_F(FlakySystem, ReadToEndRefusesMoreThanTheLimit) {
  g_content = std::string(100, 'x');

  const auto text = read_to_end(7, 99);

  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, Errc::kMalformed);
}

TEST_F(FlakySystem, PreadFullStopsAtTheEndOfTheFile) {
  g_content = "hello";
  char buffer[16] = {};

  const auto n = pread_full(7, buffer, 1);

  ASSERT_TRUE(n);
  EXPECT_EQ(std::string(buffer, *n), "ello");
}

TEST_F(FlakySystem, PreadOnceTakesWhatTheFirstCallGives) {
  g_content = "hello";
  char buffer[16] = {};

  const auto n = pread_once(7, buffer, 1);

  ASSERT_TRUE(n);
  EXPECT_EQ(std::string(buffer, *n), "e");
}

TEST_F(FlakySystem, ReadSomeRetriesInterruptsAndTellsTheEnd) {
  g_content = "x";
  char buffer[4] = {};

  const auto first = read_some(7, buffer);
  const auto second = read_some(7, buffer);

  ASSERT_TRUE(first && second);
  EXPECT_EQ(*first, 1U);
  EXPECT_EQ(*second, 0U);
}

TEST_F(FlakySystem, WriteAllWritesEveryByteOnce) {
  ASSERT_TRUE(write_all(7, "every byte"));

  EXPECT_EQ(g_written, "every byte");
}

TEST_F(FlakySystem, WriteAllReportsAFullDisk) {
  g_fail_with = ENOSPC;

  const auto status = write_all(7, "x");

  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::kNoSpace);
  EXPECT_EQ(status.error().sys_errno, ENOSPC);
}

TEST_F(FlakySystem, OpenNamesThePathAndTheReason) {
  g_fail_with = EACCES;

  const auto fd = open_file("/some/file", O_RDONLY);

  ASSERT_FALSE(fd);
  EXPECT_EQ(fd.error().code, Errc::kPermission);
  EXPECT_EQ(fd.error().what, "cannot open /some/file: Permission denied");
}

TEST(Io, WriteAllWaitsWhereANonBlockingDescriptorIsFull) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  Fd reader(ends[0]);
  const Fd writer(ends[1]);
  const std::string text(1U << 20U, 'x');  // more than a pipe takes
  std::size_t arrived = 0;
  std::thread reading([&] {
    std::array<char, 4096> buffer;
    while (arrived < text.size()) {
      const ssize_t n = ::read(reader.get(), buffer.data(), buffer.size());
      arrived += n > 0 ? static_cast<std::size_t>(n) : 0U;
      if (n == 0) {
        return;
      }
    }
  });

  const Status status = write_all(writer.get(), text);

  EXPECT_TRUE(status);
  if (!status) {
    ::fcntl(writer.get(), F_SETFL, 0);
    EXPECT_TRUE(write_all(writer.get(), text));  // so that the thread ends
  }
  reading.join();
  EXPECT_EQ(arrived, text.size());
}

TEST(Io, ReadsAProcFileWhoseSizeIsZero) {
  const auto text = read_file("/proc/self/status");

  ASSERT_TRUE(text);
  EXPECT_NE(text->find("VmRSS:"), std::string::npos);
}

TEST(Io, ReadsALink) {
  const auto self = read_link_at(AT_FDCWD, "/proc/self");
  const auto missing = read_link_at(AT_FDCWD, "/nowhere/at/all");

  ASSERT_TRUE(self);
  EXPECT_EQ(*self, std::to_string(::getpid()));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Errc::kNotFound);
  EXPECT_EQ(missing.error().what,
            "cannot read the link /nowhere/at/all: No such file or directory");
}

TEST(Io, DescriptorsAreNotInheritedByChildren) {
  const auto fd = open_file("/proc/self/status", O_RDONLY);

  ASSERT_TRUE(fd);
  EXPECT_NE(::fcntl(fd->get(), F_GETFD) & FD_CLOEXEC, 0);
}

}  // namespace
}  // namespace tidemark
