// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/preload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "monitor/procfs/process_handle.h"
#include "profiler/collect/shm_growth.h"
#include "profiler/reader/needed_libraries.h"
#include "profiler/reader/trace_directory.h"
#include "tests/support/in_child.h"
#include "tests/support/temp_tree.h"
#include "tests/support/trace_builder.h"

namespace tidemark::collect {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::StartsWith;
using tests::TempTree;

constexpr std::size_t kKiB = 1024;

TEST(PreloadValue, PutsTheTracerBeforeWhatWasThere) {
  const TempTree dir;
  dir.write("libtidemark_operators.so", "");
  const std::string tracer = dir.path("libtidemark_tracer.so");

  EXPECT_EQ(*preload_value(tracer, false, ""), tracer);
  EXPECT_EQ(*preload_value(tracer, false, "/a.so:/b.so"), tracer + ":/a.so:/b.so");
  EXPECT_EQ(*preload_value(tracer, true, "libjemalloc.so"),
            tracer + ":" + dir.path("libtidemark_operators.so") + ":libjemalloc.so");
}

TEST(PreloadValue, RefusesANameThatTheLoaderCannotRead) {
  EXPECT_FALSE(preload_value("/home/my tools/libtidemark_tracer.so", false, ""));
}

TEST(OtherAllocator, IsKnownFromWhatIsPreloaded) {
  EXPECT_TRUE(has_other_allocator({}, "/usr/lib/libfoo.so:/usr/lib/libjemalloc.so.2", ""));
  EXPECT_TRUE(has_other_allocator({}, "libtcmalloc_minimal.so.4 libfoo.so", ""));
  EXPECT_FALSE(has_other_allocator({"/bin/sh"}, "/usr/lib/libfoo.so", ""));
  EXPECT_FALSE(has_other_allocator({"no-such-program"}, "", "/bin:/usr/bin"));
}

TEST(AddressSanitizer, OfAnotherProgramIsNotSuspected) {
  EXPECT_TRUE(refuse_address_sanitizer({"sh"}, "/bin:/usr/bin", ""));
  EXPECT_TRUE(refuse_address_sanitizer({"no-such-program"}, "/bin", ""));
  EXPECT_TRUE(refuse_address_sanitizer({}, "/bin", ""));
}

TEST(NeededLibraries, AreReadFromAnElfFile) {
  EXPECT_THAT(reader::needed_libraries("/proc/self/exe"), Contains(StartsWith("libc.so")));
}

TEST(NeededLibraries, AreNoneOfWhatIsNoElfFile) {
  const TempTree dir;
  dir.write("text", "#!/bin/sh\n");
  dir.write("short",
            "\x7f"
            "ELF");
  std::string claims =
      "\x7f"
      "ELF\x02\x01\x01";
  claims.resize(64, '\xff');
  dir.write("claims", claims);

  EXPECT_THAT(reader::needed_libraries(dir.path("text")), IsEmpty());
  EXPECT_THAT(reader::needed_libraries(dir.path("short")), IsEmpty());
  EXPECT_THAT(reader::needed_libraries(dir.path("claims")), IsEmpty());
  EXPECT_THAT(reader::needed_libraries(dir.path("absent")), IsEmpty());
  EXPECT_THAT(reader::needed_libraries(dir.path()), IsEmpty());
}

TEST(TraceDirectory, IsPrivateAndGoesWithItsContent) {
  const TempTree dir;
  std::string path;
  {
    const auto made = reader::TraceDirectory::create({dir.path("absent/x"), dir.path("base")}, 0);
    ASSERT_TRUE(made) << made.error().what;
    path = made->path();
    struct stat info {};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0700U);
    EXPECT_THAT(path, StartsWith(dir.path("base/")));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(TraceDirectory, IsNotInASmallFileSystemWhereThereIsALargerOne) {
  const TempTree dir;
  for (const char* const name : {"docker", "smaller"}) {
    dir.make_directory(name);
  }

  const std::string said = tests::in_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", dir.path("docker").c_str(), "tmpfs", 0, "size=64m") != 0 ||
        ::mount("none", dir.path("smaller").c_str(), "tmpfs", 0, "size=32m") != 0) {
      return std::string("cannot mount");
    }
    const std::string docker = dir.path("docker/base");
    std::string chosen;
    for (const std::string& other : {dir.path("smaller/base"), dir.path("base")}) {
      const auto made = reader::TraceDirectory::create({docker, other}, 0);
      chosen += made ? std::filesystem::path(made->path()).parent_path().string() + '\n' : "none";
    }
    return chosen;
  });

  if (said == "cannot mount") {
    GTEST_SKIP() << "may not mount a file system here";
  }
  if (std::filesystem::space(dir.path()).available < std::uintmax_t{512} << 20U) {
    GTEST_SKIP() << "there is little room for temporary files here";
  }
  EXPECT_EQ(said, dir.path("docker/base") + '\n' + dir.path("base") + '\n');
}

TEST(TraceDirectory, TidiesUpAfterRunsThatWereKilledOnly) {
  const TempTree dir;
  dir.make_directory("base");
  std::filesystem::permissions(dir.path("base"), std::filesystem::perms::owner_all);
  tests::TraceBuilder dead;  // of a process that does not exist
  dead.header().pid = 0x7ffffff0;
  dir.write("base/trace-old/1.trace", dead.bytes());
  dir.write("base/other/1.trace", dead.bytes());

  const auto first = reader::TraceDirectory::create({dir.path("base")}, 0);
  const auto second = reader::TraceDirectory::create({dir.path("base")}, 0);

  ASSERT_TRUE(first && second);
  EXPECT_FALSE(std::filesystem::exists(dir.path("base/trace-old")));
  EXPECT_TRUE(std::filesystem::exists(dir.path("base/other")));
  EXPECT_TRUE(std::filesystem::exists(first->path()));
}

TEST(TraceDirectory, IsAdoptedOnceItsRunWasKilled) {
  const TempTree dir;
  dir.write("killed/.owner", "");
  {
    const auto adopted = reader::adopt_trace_folder(dir.path("killed"));
    EXPECT_TRUE(adopted);
    EXPECT_FALSE(reader::adopt_trace_folder(dir.path("killed"))) << "that run is alive";
    EXPECT_FALSE(reader::trace_folder_is_left(dir.path("killed")));
  }
  EXPECT_TRUE(reader::trace_folder_is_left(dir.path("killed")));
  EXPECT_TRUE(reader::adopt_trace_folder(dir.path("killed")));
}

// Else nobody could make traces in it from then on.
TEST(TraceDirectory, OfNoRunIsNotAdopted) {
  const TempTree dir;
  dir.make_directory("mine");

  EXPECT_FALSE(reader::adopt_trace_folder(dir.path("mine")));
  EXPECT_FALSE(reader::trace_folder_is_left(dir.path("mine")));

  EXPECT_TRUE(std::filesystem::is_empty(dir.path("mine")));
}

TEST(TraceDirectory, RefusesAFolderThatOthersMayWriteTo) {
  const TempTree dir;
  dir.make_directory("open");
  std::filesystem::permissions(dir.path("open"), std::filesystem::perms::all);

  const auto made = reader::TraceDirectory::create({dir.path("open"), "/proc/absent"}, 0);

  ASSERT_TRUE(made) << made.error().what;
  EXPECT_TRUE(std::filesystem::is_empty(dir.path("open")));
}

TEST(TraceDirectory, SaysWhyThereIsNoPlace) {
  const TempTree dir;
  dir.write("file", "");

  const auto made = reader::TraceDirectory::create({dir.path("file/base"), "/proc/absent"}, 0);

  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().what, testing::HasSubstr("there is no place for the tracer's files"));
  EXPECT_THAT(made.error().what, testing::HasSubstr("cannot make /proc/absent"));
}

// What somebody else made before us: a link to a folder of ours, or a folder of another user.
TEST(TraceDirectory, GoesElsewhereWhereItsNameIsTaken) {
  const TempTree dir;
  dir.make_directory("ours");
  std::filesystem::permissions(dir.path("ours"), std::filesystem::perms::owner_all);
  dir.link("link", dir.path("ours"));
  dir.make_directory("theirs");
  std::filesystem::permissions(dir.path("theirs"), std::filesystem::perms::owner_all);
  std::vector<std::string> bases = {dir.path("link")};
  constexpr uid_t kNobody = 65534;
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(dir.path("theirs").c_str(), kNobody, kNobody), 0);
    bases.push_back(dir.path("theirs"));
  }
  {
    // One whose name they could not know.
    const auto beside = reader::TraceDirectory::create(bases, 0);
    ASSERT_TRUE(beside) << beside.error().what;
    EXPECT_THAT(beside->path(), StartsWith(dir.path("tidemark-trace-")));
    EXPECT_EQ(beside->seen_as(), beside->path());
    struct stat info {};
    ASSERT_EQ(::stat(beside->path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0700U);
    EXPECT_FALSE(reader::trace_folder_is_left(beside->path()));
  }
  // What a run that was killed has left there goes with the next one.
  dir.write("tidemark-trace-killed/.owner", "");
  EXPECT_TRUE(reader::TraceDirectory::create(bases, 0));
  EXPECT_FALSE(std::filesystem::exists(dir.path("tidemark-trace-killed")));

  bases.push_back(dir.path("base"));
  const auto made = reader::TraceDirectory::create(bases, 0);

  ASSERT_TRUE(made) << made.error().what;
  EXPECT_THAT(made->path(), StartsWith(dir.path("base/")));
  EXPECT_TRUE(std::filesystem::is_empty(dir.path("ours")));
  EXPECT_TRUE(std::filesystem::is_empty(dir.path("theirs")));
}

TEST(TraceDirectory, TracesOfAProcessAreLookedForInPrivateFoldersOnly) {
  const TempTree dir;
  tests::TraceBuilder own;
  const auto key = monitor::process_key_of("/proc", ::getpid());
  ASSERT_TRUE(key);
  own.header().pid = static_cast<std::uint32_t>(key->pid);
  own.header().start_ticks = key->start_ticks;
  own.header().pid_namespace = 0;
  dir.write("base/trace-1/1.trace", own.bytes());
  const std::vector<std::string> bases = {dir.path("base")};

  std::filesystem::permissions(dir.path("base"), std::filesystem::perms::owner_all);
  EXPECT_EQ(reader::find_trace_of(::getpid(), bases), dir.path("base/trace-1"));

  std::filesystem::permissions(dir.path("base"), std::filesystem::perms::all);
  EXPECT_EQ(reader::find_trace_of(::getpid(), bases), std::nullopt);
}

ino_t inode_of(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0);
  return info.st_ino;
}

TEST(ShmGrowth, NamesTheSegmentsThatAreNewOrGrew) {
  const TempTree dir;
  dir.write("old", std::string(64 * kKiB, 'x'));
  dir.write("grows", std::string(64 * kKiB, 'x'));
  ShmGrowth growth(dir.path());
  growth.sample({});
  dir.write("new", std::string(256 * kKiB, 'x'));
  dir.write("torch_77_1", std::string(128 * kKiB, 'x'));
  dir.write("tt/1.trace", std::string(512 * kKiB, 'x'));

  growth.sample({1}, {inode_of(dir.path("new"))});

  const ShmGrowthReport own = made_by(growth.report(), {1});
  EXPECT_EQ(growth.report().segments, 2U);
  EXPECT_EQ(own.segments, 1U);
  EXPECT_EQ(own.largest.at(0).path, "new");
  EXPECT_EQ(own.grown_bytes, 256 * kKiB);
  EXPECT_EQ(made_by(growth.report(), {77}).segments, 2U);
}

TEST(ShmGrowth, LeavesASegmentWithoutANameToWhoeverMadeIt) {
  const TempTree dir;
  ShmGrowth growth(dir.path());
  growth.sample({});
  dir.write("psm_neighbour", std::string(128 * kKiB, 'x'));

  EXPECT_FALSE(growth.sample({77}));
  EXPECT_EQ(made_by(growth.report(), {77}).segments, 0U);
}

TEST(PythonObjects, AreBlocksOfMallocWithWhatWasSetBefore) {
  EXPECT_EQ(python_allocator(""), "malloc");
  EXPECT_EQ(python_allocator("pymalloc"), "malloc");
  EXPECT_EQ(python_allocator("pymalloc_debug"), "malloc_debug");
  EXPECT_EQ(python_allocator("malloc_debug"), "");
}

TEST(ShmGrowth, IsNotHiddenByTheSegmentsOfOthers) {
  const TempTree dir;
  ShmGrowth growth(dir.path());
  growth.sample({});
  dir.write("torch_88_1", std::string(512 * kKiB, 'x'));  // a neighbour, large and soon gone
  growth.sample({77});
  dir.remove("torch_88_1");
  dir.write("torch_77_1", std::string(128 * kKiB, 'x'));

  const bool is_more = growth.sample({77});

  EXPECT_TRUE(is_more);
  EXPECT_EQ(made_by(growth.report(), {77}).grown_bytes, 128 * kKiB);
}

TEST(ShmGrowth, TellsOfASegmentOnceItsMakerIsKnown) {
  const TempTree dir;
  ShmGrowth growth(dir.path());
  growth.sample({});
  dir.write("torch_77_1", std::string(128 * kKiB, 'x'));

  EXPECT_FALSE(growth.sample({1}));
  EXPECT_TRUE(growth.sample({1, 77}));
  EXPECT_FALSE(growth.sample({1, 77}));
}

}  // namespace
}  // namespace tidemark::collect
