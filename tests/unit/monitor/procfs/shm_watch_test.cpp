// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/shm_watch.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/support/fake_clock.h"
#include "tests/support/temp_tree.h"

namespace tidemark::monitor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t kBootBeforeNowS = 1000;

// A /dev/shm and a /proc made of ordinary files.
class ShmWatchTest : public testing::Test {
 protected:
  ShmWatchTest() {
    root_.make_directory("dev/shm");
    root_.make_directory("proc");
    root_.write("proc/stat", fmt::format("cpu 1 2\nbtime {}\n", ::time(nullptr) - kBootBeforeNowS));
    options_.directory = root_.path("dev/shm");
    options_.proc_root = root_.path("proc");
    options_.spent_ns = [] { return std::int64_t{0}; };
    options_.counts_all = true;
  }

  void segment(const std::string& name, std::size_t kib = 64) {
    root_.write("dev/shm/" + name, std::string(kib * 1024, 'x'));
  }

  struct stat info(const std::string& name) {
    struct stat info {};
    EXPECT_EQ(::stat(root_.path("dev/shm/" + name).c_str(), &info), 0);
    return info;
  }

  // A process that started `start_s` after boot.
  void process(pid_t pid, int start_s = 1, char state = 'S', int shmem_kib = 4) {
    const std::string directory = fmt::format("proc/{}/", pid);
    root_.write(
        directory + "stat",
        fmt::format("{} (x) {} 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 {} 1000 10 0 1 1 9 0\n", pid,
                    state, start_s * ::sysconf(_SC_CLK_TCK)));
    root_.write(directory + "status",
                fmt::format("Name:\tx\nState:\tS\nUid:\t{0}\t{0}\t{0}\t{0}\nRssShmem:\t{1} kB\n",
                            options_.own_uid, shmem_kib));
    root_.write(directory + "maps", "");
    root_.make_directory(directory + "fd");
  }

  void maps(pid_t pid, const std::string& name) {
    const struct stat file = info(name);
    root_.write(fmt::format("proc/{}/maps", pid),
                fmt::format("55d0-55e0 r-xp 00000000 fe:00 12 /bin/python\n"
                            "7f00-7f10 rw-s 00000000 {:02x}:{:02x} {}      /dev/shm/{}\n",
                            major(file.st_dev), minor(file.st_dev), file.st_ino, name));
  }

  // Whatever the process does with it, the kernel does not let us look.
  void hide(pid_t pid) {
    root_.remove(fmt::format("proc/{}/maps", pid));
    root_.link(fmt::format("proc/{}/maps", pid), "maps");  // open() fails with ELOOP
  }

  ShmReport after_passes(int passes) {
    ShmWatch watch(options_, clock_);
    SystemSample sample;
    for (int i = 0; i < passes; ++i) {
      watch.sample(sample, {});
      clock_.now_ns += options_.pass_interval_ns;
    }
    EXPECT_TRUE(watch.report());
    return watch.report().value_or(ShmReport{});
  }

  std::vector<std::string> unheld_names() {
    std::vector<std::string> names;
    for (const ShmSegment& segment : after_passes(2).largest_unheld) {
      names.push_back(segment.path);
    }
    return names;
  }

  tests::TempTree root_;
  tests::FakeClock clock_;
  ShmWatch::Options options_;
};

TEST_F(ShmWatchTest, FillsTheSample) {
  segment("psm_abc");
  ShmWatch watch(options_, clock_);
  SystemSample sample;

  watch.sample(sample, {});
  EXPECT_TRUE(sample.dev_shm_bytes);
  EXPECT_EQ(sample.dev_shm_segments, 1U);
  EXPECT_EQ(sample.dev_shm_unheld_bytes, std::nullopt);  // one pass is not enough

  clock_.now_ns += options_.pass_interval_ns;
  watch.sample(sample, {});
  EXPECT_EQ(sample.dev_shm_unheld_bytes,
            static_cast<std::uint64_t>(info("psm_abc").st_blocks) * 512);
}

TEST_F(ShmWatchTest, KnowsAtOnceThatAnEmptyFolderLeaksNothing) {
  const ShmReport report = after_passes(1);

  EXPECT_EQ(report.segments, 0U);
  EXPECT_EQ(report.unheld_bytes, 0U);
}

TEST_F(ShmWatchTest, SaysNothingAboutAFolderThatIsNotThere) {
  options_.directory = root_.path("nowhere");
  ShmWatch watch(options_, clock_);
  SystemSample sample;

  watch.sample(sample, {});

  EXPECT_EQ(sample.dev_shm_bytes, std::nullopt);
  EXPECT_EQ(sample.dev_shm_segments, std::nullopt);
  EXPECT_FALSE(watch.report());
}

TEST_F(ShmWatchTest, DoesNotCountWhatAProcessMaps) {
  segment("torch_7_1_0");
  segment("torch_7_1_1");
  process(7);
  maps(7, "torch_7_1_1");

  EXPECT_THAT(unheld_names(), ElementsAre("torch_7_1_0"));
}

TEST_F(ShmWatchTest, DoesNotCountWhatAProcessHasOpen) {
  segment("psm_a");
  segment("psm_b");
  process(7);
  root_.link("proc/7/fd/3", root_.path("dev/shm/psm_a"));
  root_.link("proc/7/fd/4", "socket:[12]");

  EXPECT_THAT(unheld_names(), ElementsAre("psm_b"));
}

TEST_F(ShmWatchTest, FindsAMappingBeyondTheFirstPieceOfALongList) {
  segment("psm_a");
  process(7);
  maps(7, "psm_a");
  const struct stat file = info("psm_a");
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    text += fmt::format("{:x}-{:x} r--p 00000000 fe:00 99   /usr/lib/lib{}.so\n", i, i + 1, i);
  }
  text += fmt::format("7f00-7f10 rw-s 00000000 {:02x}:{:02x} {}\n", major(file.st_dev),
                      minor(file.st_dev), file.st_ino);
  root_.write("proc/7/maps", text);

  EXPECT_THAT(unheld_names(), IsEmpty());
}

TEST_F(ShmWatchTest, ListsTheLargestFirst) {
  segment("psm_small", 4);
  segment("psm_large", 400);
  segment("psm_middle", 40);

  EXPECT_THAT(unheld_names(), ElementsAre("psm_large", "psm_middle", "psm_small"));
}

TEST_F(ShmWatchTest, SearchesNoFurtherOnceAllIsHeldByTheJob) {
  segment("psm_a");
  segment("psm_b");
  for (pid_t pid = 100; pid < 300; ++pid) {
    process(pid);
  }
  maps(150, "psm_a");
  maps(151, "psm_b");
  ShmMakers job(options_.proc_root);
  const auto steps_with = [&](std::vector<ProcessKey> running) {
    job.set_running(running);
    ShmPass pass(options_.directory, options_.proc_root, options_.own_uid, &job);
    int steps = 1;
    while (!pass.step()) {
      ++steps;
    }
    for (const ShmSegment& each : pass.segments()) {
      EXPECT_EQ(each.held, each.path != "psm_c");
      EXPECT_EQ(each.is_of_job, each.path != "psm_c");
    }
    return steps;
  };
  EXPECT_LE(steps_with({{150, 1}, {151, 1}, {160, 1}}), 10);

  segment("psm_c");
  EXPECT_GT(steps_with({{150, 1}, {151, 1}, {160, 1}}), 200) << "nobody holds one of them";
}

TEST_F(ShmWatchTest, LooksIntoFoldersAndSkipsOurOwn) {
  segment("joblib_memmapping_folder_7_a_b/0.pkl");
  segment("tidemark-1000/4711-99");
  segment("tidemark-is-not-my-name");

  EXPECT_THAT(unheld_names(), testing::UnorderedElementsAre("joblib_memmapping_folder_7_a_b/0.pkl",
                                                            "tidemark-is-not-my-name"));
}

TEST_F(ShmWatchTest, FollowsNoLinksAndCountsAFileOnce) {
  segment("psm_a");
  root_.link("dev/shm/loop", ".");
  root_.link("dev/shm/elsewhere", "/etc/passwd");
  ASSERT_EQ(::link(root_.path("dev/shm/psm_a").c_str(), root_.path("dev/shm/psm_b").c_str()), 0);

  EXPECT_EQ(after_passes(1).segments, 1U);
}

TEST_F(ShmWatchTest, KnowsWhetherTheOwnerInTheNameLives) {
  segment("torch_7_1_0", 30);
  segment("torch_8_1_0", 20);
  segment("torch_9_1_0", 10);
  process(7);
  process(9, /*start_s=*/kBootBeforeNowS + 500);  // a younger process has got the pid

  const ShmReport report = after_passes(2);

  ASSERT_EQ(report.largest_unheld.size(), 3U);
  EXPECT_EQ(report.largest_unheld[0].owner_pid, 7);
  EXPECT_EQ(report.largest_unheld[0].owner_alive, true);
  EXPECT_EQ(report.largest_unheld[1].owner_alive, false);
  EXPECT_EQ(report.largest_unheld[2].owner_alive, false);
}

TEST_F(ShmWatchTest, TakesAZombieForADeadOwner) {
  segment("torch_7_1_0");
  process(7, 1, 'Z');

  EXPECT_EQ(after_passes(2).largest_unheld.at(0).owner_alive, false);
}

TEST_F(ShmWatchTest, DoesNotJudgeWhenAProcessOfTheSameUserCannotBeSeen) {
  segment("psm_a", 64);
  process(7, 1, 'S', /*shmem_kib=*/200);
  hide(7);

  const ShmReport report = after_passes(2);

  EXPECT_EQ(report.unheld_bytes, 0U);
  EXPECT_EQ(report.unknown_bytes, report.named_bytes);
  EXPECT_GT(report.unknown_bytes, 0U);
}

TEST_F(ShmWatchTest, CountsWhatIsMoreThanHiddenProcessesHave) {
  segment("psm_large", 400);
  segment("psm_small", 40);
  process(7, 1, 'S', /*shmem_kib=*/100);
  hide(7);

  const ShmReport report = after_passes(2);

  // The small one may be theirs, the large one cannot.
  EXPECT_EQ(report.unheld_bytes, report.named_bytes - 100 * 1024);
  EXPECT_EQ(report.unknown_bytes, 100U * 1024);
  EXPECT_EQ(report.job_unknown_bytes, 100U * 1024);
  ASSERT_EQ(report.largest_unheld.size(), 1U);
  EXPECT_EQ(report.largest_unheld[0].path, "psm_large");
}

TEST_F(ShmWatchTest, DoesNotMindAHiddenProcessWithoutSharedMemory) {
  segment("psm_a");
  process(7, 1, 'S', /*shmem_kib=*/0);
  hide(7);

  EXPECT_EQ(after_passes(2).unknown_bytes, 0U);
}

TEST_F(ShmWatchTest, DoesNotJudgeSegmentsOfOtherUsersWithoutTheRightToSeeThem) {
  segment("psm_a");
  options_.own_uid = ::geteuid() + 1;

  const ShmReport report = after_passes(2);

  EXPECT_EQ(report.unheld_bytes, 0U);
  EXPECT_GT(report.unknown_bytes, 0U);
}

TEST_F(ShmWatchTest, CountsASegmentAgainAfterItWasHeld) {
  segment("psm_a");
  process(7);
  maps(7, "psm_a");
  ShmWatch watch(options_, clock_);
  SystemSample sample;
  const auto pass = [&] {
    watch.sample(sample, {});
    clock_.now_ns += options_.pass_interval_ns;
    return sample.dev_shm_unheld_bytes;
  };
  pass();
  EXPECT_EQ(pass(), 0U);

  root_.remove("proc/7");

  EXPECT_EQ(pass(), 0U);  // found without a holder once
  EXPECT_GT(pass(), 0U);
}

// Beside the segments of strangers.
class ShmOfAJobTest : public ShmWatchTest {
 protected:
  ShmOfAJobTest() { options_.counts_all = false; }

  static ProcessKey key(pid_t pid, int start_s = 1) {
    return {pid, static_cast<std::uint64_t>(start_s * ::sysconf(_SC_CLK_TCK))};
  }

  void pass(const std::vector<ProcessKey>& job) {
    if (!watch_) {
      watch_.emplace(options_, clock_);
    }
    watch_->sample(sample_, job);
    clock_.now_ns += options_.pass_interval_ns;
  }

  // After two more passes.
  std::vector<std::string> unheld_of(const std::vector<ProcessKey>& job) {
    pass(job);
    pass(job);
    std::vector<std::string> names;
    for (const ShmSegment& segment : watch_->report()->largest_unheld) {
      names.push_back(segment.path);
    }
    return names;
  }

  std::optional<ShmWatch> watch_;
  SystemSample sample_;
};

TEST_F(ShmOfAJobTest, CountsOnlyWhatIsNamedAfterTheJobsProcesses) {
  segment("torch_7_1_0", 40);
  segment("torch_8_1_0", 32);  // of another that runs
  segment("torch_9_1_0", 20);  // of one that has exited
  segment("psm_a", 8);         // of whoever
  process(7);
  process(8);

  EXPECT_THAT(unheld_of({key(7)}), ElementsAre("torch_7_1_0"));
  EXPECT_EQ(sample_.dev_shm_unheld_bytes, 40U * 1024);
  EXPECT_EQ(sample_.dev_shm_segments, 4U);
  EXPECT_EQ(watch_->report()->others_unheld_bytes, 60U * 1024);
}

TEST_F(ShmOfAJobTest, CountsWhatAProcessOfTheJobHeldAndNotWhatOthersHeld) {
  segment("psm_a", 20);
  segment("psm_b", 10);
  process(7);
  process(8);
  maps(7, "psm_a");
  maps(8, "psm_b");
  EXPECT_THAT(unheld_of({key(7)}), IsEmpty());

  root_.remove("proc/7");
  root_.remove("proc/8");

  EXPECT_THAT(unheld_of({}), ElementsAre("psm_a"));
}

TEST_F(ShmOfAJobTest, FindsWhatAProcessOfTheJobLeftWhenItExited) {
  process(7);
  pass({key(7)});
  segment("torch_7_1_0");
  root_.remove("proc/7");

  EXPECT_THAT(unheld_of({}), ElementsAre("torch_7_1_0"));
  EXPECT_THAT(unheld_of({}), ElementsAre("torch_7_1_0")) << "for as long as it is there";
}

TEST_F(ShmOfAJobTest, LeavesOutWhatIsOlderThanTheProcessWithThatPid) {
  segment("torch_7_1_0");
  process(7, /*start_s=*/kBootBeforeNowS + 500);

  EXPECT_THAT(unheld_of({key(7, kBootBeforeNowS + 500)}), IsEmpty());
}

TEST_F(ShmOfAJobTest, KnowsTheNamesOfAJobInAPidNamespaceOfItsOwn) {
  segment("torch_7_1_0");
  process(1007);
  root_.write("proc/1007/status", "Name:\tx\nState:\tS\nUid:\t0\t0\t0\t0\nNSpid:\t1007\t7\n");

  EXPECT_THAT(unheld_of({key(1007)}), ElementsAre("torch_7_1_0"));
}

TEST_F(ShmOfAJobTest, DoesNotCountAheadWhatOthersAdd) {
  std::uint64_t used_bytes = 0;
  options_.used_bytes = [&](const std::string&) { return used_bytes; };
  process(7);
  const auto add = [&](const std::string& name) {
    segment(name, 64);
    used_bytes += 64 * 1024;
  };
  for (int second = 0; second < 8; ++second) {
    add(fmt::format("torch_7_1_{}", second));
    pass({key(7)});
  }
  ASSERT_EQ(sample_.dev_shm_unheld_bytes, 8U * 64 * 1024) << "the last is counted ahead";

  clock_.now_ns -= options_.pass_interval_ns - 1'000'000;  // no time for a pass
  add("torch_8_1_0");
  add("psm_a");
  add("torch_7_1_8");
  watch_->sample(sample_, std::vector{key(7)});

  EXPECT_EQ(sample_.dev_shm_unheld_bytes, 9U * 64 * 1024);
}

TEST_F(ShmOfAJobTest, ForgetsProcessesWhoseSegmentsAreKnown) {
  ShmMakers makers(root_.path("proc"));
  const std::int64_t now_s = ::time(nullptr);
  makers.set_running(std::vector{key(7), key(8)});
  makers.begin_pass();
  makers.set_running(std::vector{key(8)});
  makers.end_pass();
  EXPECT_TRUE(makers.may_have_made(7, now_s)) << "it may have left one behind the pass";

  makers.begin_pass();
  makers.end_pass();
  EXPECT_FALSE(makers.may_have_made(7, now_s));
  EXPECT_TRUE(makers.may_have_made(8, now_s));
}

TEST_F(ShmWatchTest, LooksAgainSoonWhenASegmentIsNewlyWithoutAHolder) {
  segment("psm_a");
  ShmWatch watch(options_, clock_);
  SystemSample sample;
  watch.sample(sample, {});
  ASSERT_EQ(sample.dev_shm_unheld_bytes, std::nullopt);

  clock_.now_ns += options_.least_interval_ns;
  watch.sample(sample, {});

  EXPECT_GT(sample.dev_shm_unheld_bytes.value_or(0), 0U);
}

// A process that has open whatever is in the folder.
class ShmWatchPaceTest : public ShmWatchTest {
 protected:
  ShmWatchPaceTest() {
    process(7);
    options_.used_bytes = [this](const std::string&) { return used_bytes_; };
    add_held();
    SystemSample sample;
    watch_.emplace(options_, clock_);
    watch_->sample(sample, {});
  }

  void add_held() {
    const std::string name = fmt::format("psm_{}", ++segments_);
    segment(name);
    root_.link(fmt::format("proc/7/fd/{}", segments_), root_.path("dev/shm/" + name));
  }

  // Until a pass has seen one more segment, while every second `bytes` more are used.
  int seconds_to_next_pass(std::uint64_t bytes) {
    add_held();
    SystemSample sample;
    for (int second = 1; second <= 20; ++second) {
      clock_.now_ns += kNsPerSecond;
      used_bytes_ += bytes;
      watch_->sample(sample, {});
      if (sample.dev_shm_segments == segments_) {
        return second;
      }
    }
    return 0;
  }

  std::uint32_t segments_ = 0;
  std::uint64_t used_bytes_ = 0;
  std::optional<ShmWatch> watch_;
};

TEST_F(ShmWatchPaceTest, TakesItsTimeWhileNothingChanges) {
  EXPECT_EQ(seconds_to_next_pass(0), 10);
  EXPECT_EQ(seconds_to_next_pass(0), 10);
}

TEST_F(ShmWatchPaceTest, LooksLessAndLessOftenWhenChangesMeanNothing) {
  EXPECT_EQ(seconds_to_next_pass(4096), 1);
  EXPECT_EQ(seconds_to_next_pass(4096), 2);
  EXPECT_EQ(seconds_to_next_pass(4096), 4);
  EXPECT_EQ(seconds_to_next_pass(4096), 8);
  EXPECT_EQ(seconds_to_next_pass(4096), 10);
}

TEST_F(ShmWatchPaceTest, LooksOftenWhileSegmentsLoseTheirHolders) {
  for (int i = 0; i < 5; ++i) {
    seconds_to_next_pass(4096);
  }

  root_.remove("proc/7/fd/1");
  EXPECT_EQ(seconds_to_next_pass(4096), 10);
  for (int i = 2; i < 5; ++i) {
    root_.remove(fmt::format("proc/7/fd/{}", i));
    EXPECT_EQ(seconds_to_next_pass(4096), 1);
  }
}

TEST_F(ShmWatchPaceTest, CountsWhatIsAddedSinceTheLastLookWhileAllOfItIsUnheld) {
  const auto add_unheld = [&](int number) {
    segment(fmt::format("torch_{}", number), 64);
    used_bytes_ += 64 * 1024;
  };
  SystemSample sample;
  int number = 0;
  for (int second = 0; second < 8; ++second) {
    add_unheld(++number);
    clock_.now_ns += kNsPerSecond;
    watch_->sample(sample, {});
  }
  ASSERT_EQ(sample.dev_shm_unheld_bytes, 8U * 64 * 1024);

  add_unheld(++number);
  clock_.now_ns += 1'000'000;  // no time for a look
  watch_->sample(sample, {});

  EXPECT_EQ(sample.dev_shm_unheld_bytes, 9U * 64 * 1024);
}

TEST_F(ShmWatchPaceTest, TakesNothingBackWhenSomethingElseComesInBetween) {
  SystemSample sample;
  std::vector<std::uint64_t> seen;
  for (int number = 1; number <= 12; ++number) {
    segment(fmt::format("torch_{}", number), 64);
    used_bytes_ += 64 * 1024;
    if (number == 8) {
      add_held();
      used_bytes_ += 64 * 1024;
    }
    clock_.now_ns += kNsPerSecond / 4;  // several ticks between two looks
    watch_->sample(sample, {});
    seen.push_back(sample.dev_shm_unheld_bytes.value_or(0));
  }

  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end())) << testing::PrintToString(seen);
  EXPECT_GE(seen.back(), 10U * 64 * 1024);
}

TEST_F(ShmWatchPaceTest, TakesBackAtOnceWhatIsRemoved) {
  SystemSample sample;
  for (int number = 1; number <= 8; ++number) {
    segment(fmt::format("torch_{}", number), 64);
    used_bytes_ += 64 * 1024;
    clock_.now_ns += kNsPerSecond;
    watch_->sample(sample, {});
  }
  ASSERT_EQ(sample.dev_shm_unheld_bytes, 8U * 64 * 1024);

  for (int number = 1; number <= 8; ++number) {
    root_.remove(fmt::format("dev/shm/torch_{}", number));
    used_bytes_ -= 64 * 1024;
  }
  clock_.now_ns += kNsPerSecond;
  watch_->sample(sample, {});

  EXPECT_EQ(sample.dev_shm_unheld_bytes, 0U);
}

TEST_F(ShmWatchPaceTest, DoesNotCountWhatIsAddedWhileSomeOfItIsHeld) {
  SystemSample sample;
  for (int second = 0; second < 8; ++second) {
    segment(fmt::format("torch_{}", second), 64);
    add_held();
    used_bytes_ += 2 * 64 * 1024;
    clock_.now_ns += kNsPerSecond;
    watch_->sample(sample, {});
  }

  EXPECT_EQ(sample.dev_shm_unheld_bytes, 7U * 64 * 1024);  // the last is seen by one pass only
}

// 200 processes at half a millisecond are 0.1 s of work.
class ShmWatchCostTest : public ShmWatchTest {
 protected:
  ShmWatchCostTest() {
    segment("psm_a");
    for (pid_t pid = 100; pid < 300; ++pid) {
      process(pid);
    }
    options_.spent_ns = [this] { return spent_ns_ += 500'000; };
    options_.pass_interval_ns = options_.least_interval_ns = 0;
    watch_.emplace(options_, clock_);
  }

  // Until one more pass is done.
  int ticks_of_a_pass(std::int64_t tick_ns) {
    const std::uint32_t segments = ++segments_;
    segment(fmt::format("psm_{}", segments));
    SystemSample sample;
    int ticks = 0;
    while (sample.dev_shm_segments != segments + 1) {
      watch_->sample(sample, {});
      clock_.now_ns += tick_ns;
      ++ticks;
    }
    return ticks;
  }

  std::int64_t spent_ns_ = 0;
  std::uint32_t segments_ = 0;
  std::optional<ShmWatch> watch_;
};

TEST_F(ShmWatchCostTest, SpendsNoMoreThanItsShareOfTime) {
  const int first = ticks_of_a_pass(50'000'000);
  EXPECT_GE(first, 36) << "5 % of 2 s, or 40 ticks of 50 ms";
  EXPECT_LE(first, 64);

  const int second = ticks_of_a_pass(50'000'000);
  EXPECT_GE(second, 180) << "1 % of 10 s, or 200 ticks of 50 ms";
  EXPECT_LE(second, 320);
}

TEST_F(ShmWatchCostTest, SpendsItsShareAlsoWhereTicksAreFarApart) {
  EXPECT_LE(ticks_of_a_pass(kNsPerSecond), 4);
  EXPECT_LE(ticks_of_a_pass(kNsPerSecond), 16);
}

}  // namespace
}  // namespace tidemark::monitor
