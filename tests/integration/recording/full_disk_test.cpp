// SPDX-License-Identifier: Apache-2.0
// Full disks, read-only folders and file-size limits: a clear error, and what was committed stays
// readable. Each test runs in a child with mounts or limits of its own.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "common/io.h"
#include "recording/files.h"
#include "recording/open.h"
#include "recording/recorder.h"
#include "recording/run_writer.h"
#include "tests/support/in_child.h"
#include "tests/support/memory_sink.h"
#include "tests/support/numbered_ticks.h"
#include "tests/support/record_text.h"
#include "tests/support/temp_tree.h"

namespace tidemark::recording {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using tests::in_child;
using tests::numbered_tick;
using tests::TempTree;
using tests::text_of;

constexpr std::string_view kCannotMount = "cannot mount here: ";

// Mounts in a namespace of our own; the answer of the test when that is not allowed.
std::string enter_mount_namespace() {
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return std::string(kCannotMount) + std::strerror(errno);
  }
  return "";
}

std::string mount_small_disk(const std::string& where) {
  if (std::string refused = enter_mount_namespace(); !refused.empty()) {
    return refused;
  }
  if (::mount("tmpfs", where.c_str(), "tmpfs", 0, "size=1m,mode=700") != 0) {
    return std::string(kCannotMount) + std::strerror(errno);
  }
  return "";
}

std::string mount_read_only(const std::string& where) {
  if (std::string refused = enter_mount_namespace(); !refused.empty()) {
    return refused;
  }
  if (::mount(where.c_str(), where.c_str(), nullptr, MS_BIND, nullptr) != 0 ||
      ::mount(nullptr, where.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) != 0) {
    return std::string(kCannotMount) + std::strerror(errno);
  }
  return "";
}

// Writes until the writer refuses; the error, and how many ticks were accepted.
struct Filled {
  std::string error;
  Errc code = Errc::kIo;
  std::uint64_t ticks = 0;
};
Filled fill(RecordingSink& sink) {
  for (std::uint64_t n = 0; n < 1'000'000; ++n) {
    if (const Status status = sink.add(numbered_tick(n)); !status) {
      return {status.error().what, status.error().code, n};
    }
  }
  return {"the disk never filled", Errc::kIo, 0};
}

// "ok N" when the file holds exactly the first N ticks, whole.
std::string verify(const std::string& path) {
  auto reader = open_recording(path);
  if (!reader) {
    return reader.error().what;
  }
  tests::MemorySink run;
  if (const auto summary = (*reader)->read(run); !summary) {
    return summary.error().what;
  }
  for (std::uint64_t n = 0; n < run.ticks.size(); ++n) {
    if (text_of(run.ticks[n]) != text_of(numbered_tick(n))) {
      return fmt::format("tick {} is not what was written", n);
    }
  }
  return fmt::format("ok {}", run.ticks.size());
}

// Records until the disk is full, then reads back: "error | read while open | read after close".
std::string fill_and_read(const std::string& path) {
  auto writer = RunWriter::create(path);
  if (!writer) {
    return writer.error().what;
  }
  if (const Status status = (*writer)->begin({}); !status) {
    return status.error().what;
  }
  const Filled filled = fill(**writer);
  if (filled.code != Errc::kNoSpace) {
    return "not a full disk: " + filled.error;
  }
  const Status again = (*writer)->add(numbered_tick(filled.ticks));
  if (again || again.error().what != filled.error) {
    return "a second add() did not repeat the error";
  }
  writer->reset();
  const std::string expected = fmt::format("ok {}", filled.ticks);
  const std::string after = verify(path);
  return filled.error + (after == expected ? " | complete" : " | " + after + ", not " + expected);
}

TEST(FullDisk, LeavesWhatWasCommittedReadable) {
  const TempTree dir;

  const std::string answer = in_child([&] {
    const std::string refused = mount_small_disk(dir.path());
    return refused.empty() ? fill_and_read(dir.path("run")) : refused;
  });

  if (answer.starts_with(kCannotMount)) {
    GTEST_SKIP() << answer;
  }
  EXPECT_THAT(answer, StartsWith(dir.path("run") + ": cannot write: No space left on device; "
                                                   "recording stopped, the "));
  EXPECT_THAT(answer, HasSubstr("stay readable | complete"));
}

TEST(FullDisk, DoesNotStopTheSampler) {
  const TempTree dir;

  const std::string answer = in_child([&]() -> std::string {
    if (std::string refused = mount_small_disk(dir.path()); !refused.empty()) {
      return refused;
    }
    auto writer = RunWriter::create(dir.path("run"));
    if (!writer) {
      return writer.error().what;
    }
    recording::Recorder recorder(std::move(*writer));
    if (const Status status = recorder.begin({}); !status) {
      return status.error().what;
    }
    std::optional<Error> error;
    std::uint64_t n = 0;
    while (!error && n < 1'000'000) {
      if (!recorder.add(numbered_tick(n++))) {
        return "add() failed";
      }
      error = recorder.take_error();
    }
    const bool still_adds = recorder.add(numbered_tick(n)).has_value();
    const bool ends = recorder.end(0.0).has_value();
    return fmt::format("{} {} {}", error && error->code == Errc::kNoSpace, still_adds, ends);
  });

  if (answer.starts_with(kCannotMount)) {
    GTEST_SKIP() << answer;
  }
  EXPECT_EQ(answer, "true true false") << "end() tells of the failure again";
}

// Until nothing more fits.
bool fill(const std::string& path) {
  const auto file = open_file(path, O_WRONLY | O_CREAT, 0600);
  const std::string block(4096, 'x');
  for (int blocks = 0; file && blocks < 100'000; ++blocks) {
    if (!write_all(file->get(), block)) {
      return true;
    }
  }
  return false;
}

TEST(FullDisk, IsAClearErrorAtTheVeryStart) {
  const TempTree dir;

  const std::string answer = in_child([&]() -> std::string {
    if (std::string refused = mount_small_disk(dir.path()); !refused.empty()) {
      return refused;
    }
    if (fill(dir.path("filler"))) {
      const auto writer = RunWriter::create(dir.path("run"));
      return writer ? "created" : writer.error().what;
    }
    return "the filler did not fill";
  });

  if (answer.starts_with(kCannotMount)) {
    GTEST_SKIP() << answer;
  }
  EXPECT_EQ(answer, dir.path("run") + ": cannot write: No space left on device");
}

TEST(FileSizeLimit, IsAFullDiskAndNotTheEnd) {
  const TempTree dir;

  const std::string answer = in_child([&] {
    const rlimit limit{400'000, 400'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    return fill_and_read(dir.path("run"));
  });

  EXPECT_THAT(answer, StartsWith(dir.path("run") + ": cannot write: File too large; "));
  EXPECT_THAT(answer, HasSubstr("| complete"));
}

TEST(ReadOnlyFolder, CannotBeRecordedTo) {
  const TempTree dir;

  const std::string answer = in_child([&]() -> std::string {
    if (std::string refused = mount_read_only(dir.path()); !refused.empty()) {
      return refused;
    }
    const auto writer = RunWriter::create(dir.path("run"));
    return writer ? "created" : writer.error().what;
  });

  if (answer.starts_with(kCannotMount)) {
    GTEST_SKIP() << answer;
  }
  EXPECT_EQ(answer, "cannot create " + dir.path("run") + ": Read-only file system");
}

TEST(ReadOnlyFolder, GivesUpARunWhoseRecorderWasKilled) {
  const TempTree dir;
  dir.make_directory("frozen");
  {
    auto writer = RunWriter::create(dir.path("run"));
    ASSERT_TRUE(writer);
    ASSERT_TRUE((*writer)->begin({}));
    for (std::uint64_t n = 0; n < 20; ++n) {
      ASSERT_TRUE((*writer)->add(numbered_tick(n)));
    }
    // As a kill leaves it: the ticks are in the log only.
    ASSERT_TRUE(copy_file(dir.path("run"), dir.path("frozen/run")));
    ASSERT_TRUE(copy_file(dir.path("run-wal"), dir.path("frozen/run-wal")));
  }

  const std::string answer = in_child([&]() -> std::string {
    const std::string refused = mount_read_only(dir.path("frozen"));
    return refused.empty() ? verify(dir.path("frozen/run")) : refused;
  });

  if (answer.starts_with(kCannotMount)) {
    GTEST_SKIP() << answer;
  }
  EXPECT_EQ(answer, "ok 20");
}

}  // namespace
}  // namespace tidemark::recording
