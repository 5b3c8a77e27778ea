// SPDX-License-Identifier: Apache-2.0
// What goes wrong for the tracer does not go wrong for its target.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "common/io.h"
#include "tests/integration/preload/held_truth.h"
#include "tests/support/paths.h"
#include "tests/support/subprocess.h"
#include "tests/support/temp_tree.h"
#include "tests/support/traced_run.h"

namespace tidemark::tests {
namespace {

using testing::HasSubstr;
using testing::Not;
using wire::Mode;

std::string victim(const std::string& name) { return victim_path("traced_" + name); }

const TracedFile* file_of_victim(const TracedRun& run) {
  const auto truths = parse_truth(run.output);
  return truths.empty() ? nullptr : run.of_pid(truths.at(0).pid);
}

// All blocks are accounted for: recorded, or counted as lost.
void expect_all_accounted(const TracedRun& run) {
  const auto truths = parse_truth(run.output);
  ASSERT_FALSE(truths.empty());
  const TracedFile* const file = run.of_pid(truths[0].pid);
  ASSERT_NE(file, nullptr);
  const auto& held = truths[0].held.at(0);
  const double recorded = file->sum_of(held.function, held.kind).live_blocks;
  const auto& losses = file->snapshot.losses;
  const auto lost = static_cast<double>(losses.live_full + losses.sites_full);
  EXPECT_LE(recorded, held.live_blocks);
  EXPECT_GE(recorded + lost, held.live_blocks);
}

class HardTimes : public testing::TestWithParam<Mode> {
 protected:
  TracedRun run(const std::vector<std::string>& arguments, const std::string& limits = "") {
    TraceAsk ask;
    ask.mode = GetParam();
    ask.sample_every_bytes = 256;
    ask.directory = folder_.path();
    if (!limits.empty()) {
      ask.before = {"/bin/bash", "-c", limits + " && exec \"$0\" \"$@\""};
    }
    std::vector<std::string> argv = {victim("hard_times")};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return run_traced(argv, ask);
  }
  // With its folder on a file system of its own, whose files are looked at afterwards.
  TracedRun run_on_tmpfs(const std::string& options) {
    const TempTree place;
    TraceAsk ask;
    ask.mode = GetParam();
    ask.sample_every_bytes = 256;
    ask.directory = place.path();
    ask.before = {"/usr/bin/unshare", "-m", "/bin/bash", "-c",
                  "mount -t tmpfs -o " + options + " none '" + place.path() +
                      "' || exit 78; \"$0\" \"$@\"; code=$?; cp -r '" + place.path() + "/.' '" +
                      folder_.path() + "'; exit $code"};
    TracedRun done = run_traced({victim("hard_times"), "nothing"}, ask);
    read_traces(folder_.path(), true, done);
    return done;
  }
  // The error for which the file could not grow, 0 when it could.
  static int why_it_is_full(const TracedRun& run) {
    const TracedFile* const file = file_of_victim(run);
    return file == nullptr ? -1 : file->snapshot.extend_errno;
  }

  // The target ran on, its output is its own, and no block is missing that nobody tells of: all are
  // there or counted as lost, or there is no file.
  static void expect_told(const TracedRun& run) {
    ASSERT_EQ(run.status, 0) << run.errors;
    EXPECT_EQ(run.errors, "");
    if (run.files.empty()) {
      return;
    }
    const auto& losses = file_of_victim(run)->snapshot.losses;
    if (why_it_is_full(run) == 0) {
      EXPECT_EQ(losses.live_full + losses.sites_full, 0U);
    }
    if (GetParam() == Mode::kExact) {
      expect_all_accounted(run);
    }
  }

  // The file grew all the same.
  static void expect_nothing_lost(const TracedRun& run) {
    ASSERT_EQ(run.status, 0) << run.errors;
    EXPECT_EQ(why_it_is_full(run), 0);
    const TracedFile* const file = file_of_victim(run);
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(file->snapshot.losses.live_full + file->snapshot.losses.sites_full, 0U);
    const HeldTruth held = parse_truth(run.output).at(0).held.at(0);
    const double found = file->sum_of(held.function, held.kind).live_blocks;
    if (GetParam() == Mode::kExact) {
      EXPECT_EQ(found, held.live_blocks);
    } else {
      EXPECT_NEAR(found, held.live_blocks, 0.05 * held.live_blocks);
    }
  }

  TempTree folder_;
};

INSTANTIATE_TEST_SUITE_P(, HardTimes, testing::Values(Mode::kExact, Mode::kSampled),
                         [](const auto& named) {
                           return named.param == Mode::kExact ? "Exact" : "Sampled";
                         });

TEST_P(HardTimes, NothingIsTakenAway) {
  const TracedRun done = run({"nothing"});

  ASSERT_EQ(done.status, 0) << done.errors;
  EXPECT_EQ(why_it_is_full(done), 0);
}

TEST_P(HardTimes, WithoutDescriptors) {
  const TracedRun done = run({"descriptors"});

  ASSERT_EQ(done.status, 0);
  EXPECT_EQ(why_it_is_full(done), EMFILE);
}

TEST_P(HardTimes, WithAllDescriptorsInUse) {
  expect_nothing_lost(run({"free_descriptors"}, "ulimit -n 200"));
}

TEST_P(HardTimes, InAnotherRootFolder) {
  const TempTree other;
  const TracedRun done = run({"root_folder", other.path()});

  if (done.status == 77) {
    GTEST_SKIP() << "may not chroot here";
  }
  expect_nothing_lost(done);
}

TEST_P(HardTimes, WithoutRights) {
  const TracedRun done = run({"rights"});

  if (done.status == 77) {
    GTEST_SKIP() << "only root can give up its rights";
  }
  expect_nothing_lost(done);
}

TEST_P(HardTimes, WithLittleAddressSpace) {
  const TracedRun done = run({"address_space", "20000000"});

  expect_told(done);
}

TEST_P(HardTimes, WithLittleMemoryToLock) {
  const TracedRun done = run({"locked_memory"});

  if (done.status == 77) {
    GTEST_SKIP() << "cannot lock memory here";
  }
  expect_told(done);
}

TEST_P(HardTimes, UnderUlimitF) {
  const TracedRun done = run({"nothing"}, "ulimit -f 300");

  ASSERT_EQ(done.status, 0) << done.errors;
  EXPECT_EQ(why_it_is_full(done), EFBIG);
  if (GetParam() == Mode::kExact) {
    expect_all_accounted(done);
  }
}

TEST_P(HardTimes, UnderUlimitFOfNothing) {
  const TracedRun done = run({"nothing"}, "ulimit -f 0");

  ASSERT_EQ(done.status, 0) << done.errors;
  EXPECT_EQ(done.errors, "");
  EXPECT_TRUE(done.files.empty());
}

TEST_P(HardTimes, UnderUlimitV) {
  const TracedRun done = run({"nothing"}, "ulimit -v 40000");

  expect_told(done);
}

// Of which the program alone needs nearly a fourth.
TEST_P(HardTimes, AProgramStartsUnderASmallUlimitV) {
  TraceAsk ask;
  ask.mode = GetParam();
  ask.before = {"/bin/bash", "-c", "ulimit -v 12000 && exec \"$0\" \"$@\""};

  const TracedRun done = run_traced({"/bin/true"}, ask);

  EXPECT_EQ(done.status, 0);
  EXPECT_EQ(done.errors, "");
  EXPECT_EQ(done.files.size(), 1U);
}

TEST_P(HardTimes, AProgramLocksItsMemoryUnderTheUsualLimit) {
  Subprocess plain({victim("locks_memory")});
  plain.close_input();
  if (plain.wait() != 0) {
    GTEST_SKIP() << "cannot lock memory here";
  }
  TraceAsk ask;
  ask.mode = GetParam();

  const TracedRun done = run_traced({victim("locks_memory")}, ask);

  EXPECT_EQ(done.status, 0);
  EXPECT_EQ(done.errors, "");
  EXPECT_EQ(done.files.size(), 1U);
}

TEST_P(HardTimes, UnderUlimitL) {
  const TracedRun done = run({"nothing"}, "ulimit -l 0");

  expect_told(done);
}

TEST_P(HardTimes, OnAFileSystemWithoutRoom) {
  const TracedRun done = run_on_tmpfs("size=32k");

  if (done.status == 78 || done.status == 1) {
    GTEST_SKIP() << "may not mount here: " << done.errors;
  }
  EXPECT_EQ(done.status, 0) << done.errors;
  EXPECT_EQ(done.errors, "");
  EXPECT_TRUE(done.files.empty());
  EXPECT_EQ(done.unreadable, 0U) << "an unfinished file is left";
}

TEST_P(HardTimes, OnAFileSystemThatFillsUp) {
  const TracedRun done = run_on_tmpfs("size=300k");

  if (done.status == 78 || done.status == 1) {
    GTEST_SKIP() << "may not mount here: " << done.errors;
  }
  EXPECT_EQ(why_it_is_full(done), ENOSPC);
  expect_told(done);
}

TEST_P(HardTimes, InAFolderThatCannotBeWrittenTo) {
  const TracedRun done = run_on_tmpfs("ro");

  if (done.status == 78 || done.status == 1) {
    GTEST_SKIP() << "may not mount here: " << done.errors;
  }
  EXPECT_TRUE(done.files.empty());
  expect_told(done);
}

// What the tracer takes of a file system, the program may need.
TEST_P(HardTimes, OnASmallFileSystemThatTheProgramUsesToo) {
  const TempTree place;
  TraceAsk ask;
  ask.mode = GetParam();
  ask.sample_every_bytes = 256;
  ask.directory = place.path();
  ask.before = {
      "/usr/bin/unshare", "-m", "/bin/bash", "-c",
      "mount -t tmpfs -o size=16m none '" + place.path() + "' || exit 78; exec \"$0\" \"$@\""};

  const TracedRun done =
      run_traced({victim("hard_times"), "space", place.path(), std::to_string(7U << 20U)}, ask);

  if (done.status == 78 || done.status == 1) {
    GTEST_SKIP() << "may not mount here: " << done.errors;
  }
  EXPECT_EQ(done.status, 0) << done.errors;
  EXPECT_EQ(done.errors, "");
}

TEST_P(HardTimes, WithoutAFolder) {
  TraceAsk ask;
  ask.mode = GetParam();
  ask.directory = folder_.path("nothing/here");

  const TracedRun done = run_traced({victim("hard_times"), "nothing"}, ask);

  ASSERT_EQ(done.status, 0);
  EXPECT_EQ(done.errors, "");  // whoever asked for the trace has gone, with the folder
}

TEST_P(HardTimes, WithoutLibunwind) {
  TraceAsk ask;
  ask.mode = GetParam();
  ask.sample_every_bytes = 256;
  ask.libunwind = true;
  ask.before = {"/usr/bin/unshare", "-m", "/bin/bash", "-c",
                "for f in /usr/lib/x86_64-linux-gnu/libunwind.so.8*; do [ ! -e $f ] || "
                "mount --bind /dev/null $f || exit 78; done; exec \"$0\" \"$@\""};

  const TracedRun done = run_traced({victim("hard_times"), "nothing"}, ask);

  if (done.status == 78 || done.status == 1) {
    GTEST_SKIP() << "may not mount here: " << done.errors;
  }
  EXPECT_EQ(done.status, 0);
  EXPECT_EQ(done.errors, "");
  const TracedFile* const file = file_of_victim(done);
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file->snapshot.reason, "libunwind.so.8 is not installed: stacks are walked without it");
  EXPECT_GT(file->top().frames, 2U);
}

TEST_P(HardTimes, TheFolderIsDeletedMeanwhile) {
  TraceAsk ask;
  ask.mode = GetParam();
  ask.directory = folder_.path();
  const std::string script = "rm -r '" + folder_.path() + "'; declare -a a; for i in {1..30000}; " +
                             "do a[i]=$i$i; done; (echo ${#a[@]}); exec 2>/dev/null; /bin/echo end";

  const TracedRun done = run_traced({"/bin/bash", "-c", script}, ask);

  EXPECT_EQ(done.status, 0);
  EXPECT_EQ(done.output, "30000\nend\n");
}

TEST(Chaos, ASmallStackIsEnoughToStartProgramsWithALargeEnvironment) {
  const TracedRun run = run_traced({victim("small_stack")});

  EXPECT_EQ(run.status, 0) << run.errors;
  EXPECT_EQ(run.files.size(), 42U) << "its own, and those of the programs that it starts";
}

TEST(Chaos, AStackThatIsUnmappedBelowThatOfAThreadIsNotRead) {
  for (const Mode mode : {Mode::kExact, Mode::kSampled}) {
    TraceAsk ask;
    ask.mode = mode;
    ask.sample_every_bytes = 256;
    const TracedRun run = run_traced({victim("stale_stack")}, ask);

    EXPECT_EQ(run.status, 0) << run.errors;
    EXPECT_EQ(run.output, "ok\n");
  }
}

// The dynamic linker would complain about it, in the program's output.
TEST(Chaos, AProgramThatCannotLoadTheTracerDoesNotTry) {
  const TempTree place;
  const std::string copy = place.path("libtidemark_tracer.so");
  std::filesystem::copy_file(tracer_path(), copy);
  const TempTree folder;
  TraceAsk ask;
  ask.directory = folder.path();
  ask.environment = {"LD_PRELOAD=" + copy};

  const TracedRun run = run_traced({"/bin/sh", "-c", "rm '" + copy + "'; exec /usr/bin/env"}, ask);

  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.errors, "");
  EXPECT_THAT(run.output, Not(HasSubstr("LD_PRELOAD=")));
  EXPECT_THAT(run.output, Not(HasSubstr("TIDEMARK_TRACE=")));
}

TEST(Chaos, AProgramOfAnotherUserIsLeftAlone) {
  if (::geteuid() != 0 || ::access("/usr/bin/setpriv", X_OK) != 0) {
    GTEST_SKIP() << "only root can become another user";
  }
  const TracedRun run = run_traced(
      {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/env"});

  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.errors, "");
  EXPECT_THAT(run.output, Not(HasSubstr("LD_PRELOAD=")));
  EXPECT_THAT(run.output, Not(HasSubstr("TIDEMARK_TRACE=")));
}

TEST(Chaos, AProgramWithMoreRightsIsLeftAlone) {
  const TempTree folder;
  const std::string program = folder.path("raised");
  std::filesystem::copy_file(victim("leak_linear"), program);
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  if (::geteuid() != 0 || ::chown(program.c_str(), 65534, 65534) != 0 ||
      ::chmod(program.c_str(), 04755) != 0) {
    GTEST_SKIP() << "only root can make a program that changes its user";
  }

  const TracedRun run = run_traced({program}, {});

  EXPECT_EQ(run.status, 0) << run.errors;
  EXPECT_TRUE(run.files.empty());
  EXPECT_EQ(run.unreadable, 0U);
}

// A filter that ends the process for a system call that it does not make itself.
class Sandbox : public testing::TestWithParam<const char*> {
 protected:
  static TracedRun run(Mode mode, const char* blocks) {
    TraceAsk ask;
    ask.mode = mode;
    ask.sample_every_bytes = 256;
    return run_traced({victim("sandboxed"), GetParam(), blocks}, ask);
  }
};

TEST_P(Sandbox, ASmallProgramLosesNothing) {
  const TracedRun done = run(Mode::kExact, "1500");  // more than the tables hold at first

  if (done.status == 77) {
    GTEST_SKIP() << "may not filter system calls here";
  }
  ASSERT_EQ(done.status, 0) << done.output << done.errors;
  const TracedFile* const file = file_of_victim(done);
  ASSERT_NE(file, nullptr);
  const HeldTruth held = parse_truth(done.output).at(0).held.at(0);
  EXPECT_EQ(file->sum_of(held.function, held.kind).live_blocks, held.live_blocks);
  EXPECT_EQ(file->snapshot.losses.live_full + file->snapshot.losses.sites_full, 0U);
}

TEST_P(Sandbox, ALargeProgramRunsOnAndLossesAreCounted) {
  for (const Mode mode : {Mode::kExact, Mode::kSampled}) {
    const TracedRun done = run(mode, "12000");

    if (done.status == 77) {
      GTEST_SKIP() << "may not filter system calls here";
    }
    ASSERT_EQ(done.status, 0) << done.output << done.errors;
    if (mode == Mode::kExact) {
      expect_all_accounted(done);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, Sandbox,
                         testing::Values("kill", "kill_by_prctl", "kill_all_threads", "trap",
                                         "fails", "strict", "refused"),
                         [](const auto& named) { return std::string(named.param); });

// A child of vfork shares the memory of its parent, not its filters.
class FilteredChild : public testing::TestWithParam<const char*> {};

TEST_P(FilteredChild, DoesNotSilenceItsParent) {
  const TracedRun done = run_traced({victim("sandboxed"), GetParam(), "12000"});

  if (done.status == 77) {
    GTEST_SKIP() << "may not filter system calls here";
  }
  ASSERT_EQ(done.status, 0) << done.output << done.errors;
  EXPECT_EQ(done.files.size(), 1U) << "what inherits a filter is not traced";
  const TracedFile* const file = file_of_victim(done);
  ASSERT_NE(file, nullptr);
  const HeldTruth held = parse_truth(done.output).at(0).held.at(0);
  EXPECT_EQ(file->sum_of(held.function, held.kind).live_blocks, held.live_blocks);
  EXPECT_EQ(file->snapshot.losses.live_full + file->snapshot.losses.sites_full, 0U);
}

INSTANTIATE_TEST_SUITE_P(, FilteredChild, testing::Values("vfork", "vfork_fails"),
                         [](const auto& named) { return std::string(named.param); });

// The header is written outside as well, by anybody who may: its values are not believed.
TEST(Chaos, ADamagedFileDoesNotHurtTheTarget) {
  const TempTree folder;
  TraceAsk ask;
  ask.directory = folder.path();
  ask.follow = false;
  const std::string script =
      "f=$(echo '" + folder.path() + "'/$$-*.trace); for round in 0 1 2 3 4 5 6 7 8 9; do " +
      "printf '\\377%.0s' {1..64} | dd of=\"$f\" bs=1 seek=$((320 + round * 64)) conv=notrunc " +
      "2>/dev/null; a=(); for i in {1..2000}; do a[i]=$i$i; done; done; echo end";

  const TracedRun run = run_traced({"/bin/bash", "-c", script}, ask);

  EXPECT_EQ(run.status, 0) << run.errors;
  EXPECT_EQ(run.output, "end\n");
}

void expect_peace(int seconds, int forks, bool libunwind) {
  TraceAsk ask;
  ask.libunwind = libunwind;
  ask.names = false;

  const TracedRun run =
      run_traced({victim("chaos"), std::to_string(seconds), std::to_string(forks)}, ask);

  EXPECT_EQ(run.status, 0) << run.output << run.errors;
  EXPECT_EQ(run.errors, "");
  EXPECT_EQ(run.unreadable, 0U);
  EXPECT_GT(run.files.size(), static_cast<std::size_t>(forks));
  for (const TracedFile& file : run.files) {
    EXPECT_EQ(file.snapshot.losses.live_full, 0U);
    EXPECT_EQ(file.snapshot.read_losses.damaged_items, 0U);
  }
}

TEST(Chaos, EightThreadsOpenAllocateAndFork) { expect_peace(5, 0, false); }
TEST(Chaos, EightThreadsOpenAllocateAndForkByLibunwind) { expect_peace(5, 0, true); }
TEST(Chaos, AThousandForksOfEightThreads) { expect_peace(0, 1000, false); }

}  // namespace
}  // namespace tidemark::tests
