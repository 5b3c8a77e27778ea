// SPDX-License-Identifier: Apache-2.0
#include "monitor/markers/markers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/support/ring_file.h"
#include "tests/support/temp_tree.h"

namespace tidemark::monitor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using tests::RingFile;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kRunStart = 100 * kSecond;
constexpr std::uint64_t kForeignNamespace = 1;

// A /dev/shm of its own, in which processes that do not exist have rings.
class MarkerReaderTest : public testing::Test {
 protected:
  MarkerReaderTest() {
    shm_.make_directory(directory_);
    ::chmod(shm_.path(directory_).c_str(), 0700);
  }

  std::string file_name(const ProcessKey& key, const std::string& tag,
                        std::uint64_t pid_namespace = kForeignNamespace) const {
    return fmt::format("{}/{}-{}-{}.{}.markers", directory_, key.pid, key.start_ticks,
                       pid_namespace, tag);
  }

  RingFile make_ring(const ProcessKey& key, const std::string& tag = "c") const {
    return {static_cast<std::uint32_t>(key.pid), key.start_ticks, shm_.path(file_name(key, tag))};
  }

  MarkerReader make_reader() {
    MarkerReader::Options options;
    options.run_start_ns = kRunStart;
    options.scan_every_ns = kSecond;
    options.locate = [this](const ProcessKey& key) -> Result<MarkerPlace> {
      ++locate_calls_;
      if (located_directory_.empty()) {
        return Error{Errc::kGone, "gone"};
      }
      return MarkerPlace{shm_.path(), located_directory_, ::geteuid(), key.pid,
                         fmt::format("{}-{}-{}.", key.pid, key.start_ticks, kForeignNamespace)};
    };
    return MarkerReader(options);
  }

  // "t pid kind value name" of everything new at `now_s` after the start of the run.
  std::vector<std::string> poll(MarkerReader& reader, const std::vector<ProcessKey>& processes,
                                double now_s) {
    std::vector<MarkerRecord> records;
    reader.poll(processes, kRunStart + static_cast<std::int64_t>(now_s * 1e9), records);
    return lines(records);
  }

  static std::vector<std::string> lines(const std::vector<MarkerRecord>& records) {
    std::vector<std::string> text;
    for (const MarkerRecord& record : records) {
      text.push_back(fmt::format("{} {} {} {}{}", record.t_s, record.key.pid,
                                 marker_name(record.kind), record.value, record.name));
    }
    return text;
  }

  static std::uint64_t at(double t_s) {
    return static_cast<std::uint64_t>(kRunStart + static_cast<std::int64_t>(t_s * 1e9));
  }

  const ProcessKey first_{11, 1100};
  const ProcessKey second_{12, 1200};
  const std::string directory_ = fmt::format("tidemark-{}", ::geteuid());
  tests::TempTree shm_;
  std::string located_directory_ = directory_;
  int locate_calls_ = 0;
};

TEST_F(MarkerReaderTest, DeliversMarkersOfAllProcessesInTheOrderOfTime) {
  RingFile one = make_ring(first_);
  RingFile two = make_ring(second_, "py");
  MarkerReader reader = make_reader();
  one.step(1, at(0.5));
  one.step(2, at(2));
  two.mark(TIDEMARK_KIND_PHASE_BEGIN, 0, "eval", at(1));

  EXPECT_THAT(poll(reader, {first_, second_}, 3),
              ElementsAre("0.5 11 step 1", "1 12 phase_begin 0eval", "2 11 step 2"));
  EXPECT_THAT(poll(reader, {first_, second_}, 4), IsEmpty());
}

TEST_F(MarkerReaderTest, FindsARingThatAppearsLater) {
  MarkerReader reader = make_reader();
  EXPECT_THAT(poll(reader, {first_}, 0), IsEmpty());

  RingFile ring = make_ring(first_);
  ring.step(1, at(0.25));

  EXPECT_THAT(poll(reader, {first_}, 0.5), IsEmpty()) << "lists once a second only";
  EXPECT_THAT(poll(reader, {first_}, 1), ElementsAre("0.25 11 step 1"));
  EXPECT_EQ(locate_calls_, 1);
}

TEST_F(MarkerReaderTest, KeepsARingThatComesAndGoesBetweenTwoPolls) {
  MarkerReader reader = make_reader();
  EXPECT_THAT(poll(reader, {first_}, 0), IsEmpty());

  RingFile ring = make_ring(first_);
  reader.find_rings(static_cast<std::int64_t>(at(1.0)));
  ring.step(1, at(1.25));
  std::filesystem::remove(shm_.path(file_name(first_, "c")));

  EXPECT_THAT(poll(reader, {}, 30), ElementsAre("1.25 11 step 1"));
}

TEST_F(MarkerReaderTest, FindsTheRingOfAProcessThatChangedItsUserOrMounts) {
  MarkerReader reader = make_reader();
  located_directory_ = "tidemark-before";
  EXPECT_THAT(poll(reader, {first_}, 0), IsEmpty());

  located_directory_ = directory_;
  RingFile ring = make_ring(first_);
  ring.step(1, at(1));

  EXPECT_THAT(poll(reader, {first_}, 4), IsEmpty()) << "does not look every time";
  EXPECT_THAT(poll(reader, {first_}, 5), ElementsAre("1 11 step 1"));
  poll(reader, {first_}, 20);
  EXPECT_EQ(locate_calls_, 2) << "has a ring, needs no second place";
}

TEST_F(MarkerReaderTest, KeepsThePlaceOfAProcessThatCannotBeLocatedAgain) {
  MarkerReader reader = make_reader();
  poll(reader, {first_}, 0);
  located_directory_.clear();
  poll(reader, {first_}, 6);

  RingFile ring = make_ring(first_);
  ring.step(1, at(7));

  EXPECT_THAT(poll(reader, {first_}, 8), ElementsAre("7 11 step 1"));
}

TEST_F(MarkerReaderTest, ReadsSeveralRingsOfOneProcess) {
  RingFile native = make_ring(first_, "c");
  RingFile python = make_ring(first_, "py");
  MarkerReader reader = make_reader();
  native.step(1, at(1));
  python.mark(TIDEMARK_KIND_EPOCH, 0, {}, at(2));

  EXPECT_THAT(poll(reader, {first_}, 3), ElementsAre("1 11 step 1", "2 11 epoch 0"));
}

TEST_F(MarkerReaderTest, FollowsARingThatIsReplaced) {
  MarkerReader reader = make_reader();
  {
    RingFile ring = make_ring(first_);
    ring.step(1, at(0));
    EXPECT_THAT(poll(reader, {first_}, 0), SizeIs(1));
  }
  shm_.remove(file_name(first_, "c"));
  RingFile ring = make_ring(first_);
  ring.step(2, at(1));

  EXPECT_THAT(poll(reader, {first_}, 2), ElementsAre("1 11 step 2"));
}

TEST_F(MarkerReaderTest, FollowsARingThatIsReplacedAgainAndAgain) {
  MarkerReader reader = make_reader();
  for (int n = 1; n <= 40; ++n) {
    RingFile ring = make_ring(first_);
    EXPECT_THAT(poll(reader, {first_}, 2 * n), SizeIs(n == 1 ? 0 : 1)) << n;
    ring.step(n, at(2 * n));
    shm_.remove(file_name(first_, "c"));
  }

  EXPECT_THAT(poll(reader, {}, 100), ElementsAre("80 11 step 40"));
}

TEST_F(MarkerReaderTest, ReadsTheLastMarkersOfAProcessThatHasEnded) {
  RingFile ring = make_ring(first_);
  MarkerReader reader = make_reader();
  poll(reader, {first_}, 0);
  ring.step(9, at(0.125));
  shm_.remove(file_name(first_, "c"));

  EXPECT_THAT(poll(reader, {}, 0.25), ElementsAre("0.125 11 step 9"));
  EXPECT_THAT(poll(reader, {}, 5), IsEmpty());
}

TEST_F(MarkerReaderTest, GivesTheStateInsteadOfTheHistoryBeforeTheRun) {
  RingFile ring = make_ring(first_);
  for (int n = 1; n <= 50; ++n) {
    ring.step(n, at(-51 + n));
  }
  ring.mark(TIDEMARK_KIND_EPOCH, 3, {}, at(-0.75));
  ring.mark(TIDEMARK_KIND_PHASE_BEGIN, 0, "train", at(-0.5));
  ring.mark(TIDEMARK_KIND_PHASE_BEGIN, 0, "eval", at(-0.5));
  ring.mark(TIDEMARK_KIND_PHASE_END, 0, "eval", at(-0.25));
  ring.mark(TIDEMARK_KIND_GAUGE, 7, "bytes", at(-0.2));
  ring.mark(TIDEMARK_KIND_GAUGE, 8, "bytes", at(-0.125));
  ring.step(51, at(0.5));
  MarkerReader reader = make_reader();

  EXPECT_THAT(poll(reader, {first_}, 1),
              ElementsAre("-1 11 step 50", "-0.75 11 epoch 3", "-0.5 11 phase_begin 0train",
                          "-0.125 11 gauge 8bytes", "0.5 11 step 51"));
}

TEST_F(MarkerReaderTest, KnowsTheStepEvenWhenItsRecordIsGone) {
  RingFile ring = make_ring(first_);
  ring.header.step = 5000;
  ring.header.step_time_ns = at(-2);
  ring.put();
  MarkerReader reader = make_reader();

  EXPECT_THAT(poll(reader, {first_}, 1), ElementsAre("-2 11 step 5000"));
}

TEST_F(MarkerReaderTest, CountsLosses) {
  RingFile ring = make_ring(first_);
  MarkerReader reader = make_reader();
  poll(reader, {first_}, 0);

  for (int n = 0; n < 5000; ++n) {
    ring.step(n, at(0.5));
  }
  const auto seen = poll(reader, {first_}, 1);

  EXPECT_EQ(reader.take_lost() + seen.size(), 5000U);
}

TEST_F(MarkerReaderTest, CountsAsLostWhatIsTooMuchForOnePoll) {
  constexpr std::size_t kMost = 65'536;
  constexpr int kPerRing = 4000;
  for (const ProcessKey& key : {first_, second_}) {
    RingFile ring = make_ring(key);
    for (int step = 0; step < kPerRing; ++step) {
      ring.step(step, at(0.5));
    }
    for (int n = 1; n < 9; ++n) {  // one ring under nine names serves as nine
      std::filesystem::create_hard_link(shm_.path(file_name(key, "c")),
                                        shm_.path(file_name(key, fmt::format("c{}", n))));
    }
  }
  MarkerReader reader = make_reader();

  EXPECT_THAT(poll(reader, {first_, second_}, 1), SizeIs(kMost));
  EXPECT_EQ(reader.take_lost(), 2 * 9 * kPerRing - kMost);
}

TEST_F(MarkerReaderTest, DoesNotBelieveInTheFuture) {
  RingFile ring = make_ring(first_);
  ring.step(1, UINT64_MAX);
  MarkerReader reader = make_reader();

  EXPECT_THAT(poll(reader, {first_}, 2), ElementsAre("2 11 step 1"));
}

TEST_F(MarkerReaderTest, CountsFilesThatItCannotUse) {
  RingFile ring = make_ring(first_);
  ring.header.version = 7;
  ring.put();
  std::filesystem::create_symlink("/etc/passwd", shm_.path(file_name(first_, "link")));
  ::mkfifo(shm_.path(file_name(first_, "fifo")).c_str(), 0600);
  MarkerReader reader = make_reader();

  EXPECT_THAT(poll(reader, {first_}, 0), IsEmpty());
  EXPECT_THAT(poll(reader, {first_}, 2), IsEmpty());
  EXPECT_EQ(reader.unreadable_files(), 3U) << "each counted once";
}

TEST_F(MarkerReaderTest, RemovesFilesOfTheDeadAndNoOthers) {
  const pid_t dead = ::fork();
  if (dead == 0) {
    ::_exit(0);
  }
  ::waitpid(dead, nullptr, 0);
  const auto own = pid_namespace_of("self");
  ASSERT_TRUE(own);
  const std::string of_dead = file_name({dead, 1}, "c", *own);
  const std::string of_reused_pid = file_name({::getpid(), 1}, "c", *own);
  const std::string of_other_namespace = file_name({dead, 1}, "c", *own + 1);
  const std::string foreign = directory_ + "/notes.txt";
  for (const auto& name : {of_dead, of_reused_pid, of_other_namespace, foreign}) {
    shm_.write(name, "x");
  }
  RingFile watched = make_ring(first_);
  MarkerReader reader = make_reader();

  poll(reader, {first_}, 0);

  EXPECT_FALSE(std::filesystem::exists(shm_.path(of_dead)));
  EXPECT_FALSE(std::filesystem::exists(shm_.path(of_reused_pid)));
  EXPECT_TRUE(std::filesystem::exists(shm_.path(of_other_namespace)));
  EXPECT_TRUE(std::filesystem::exists(shm_.path(foreign)));
  EXPECT_TRUE(std::filesystem::exists(shm_.path(file_name(first_, "c"))));
}

TEST_F(MarkerReaderTest, FinishReadsWhatIsLeft) {
  MarkerReader reader = make_reader();
  poll(reader, {first_}, 0);
  RingFile ring = make_ring(first_);
  ring.step(1, at(0.125));

  std::vector<MarkerRecord> records;
  reader.finish(kRunStart + kSecond / 4, records);

  EXPECT_THAT(lines(records), ElementsAre("0.125 11 step 1"));
}

}  // namespace
}  // namespace tidemark::monitor
