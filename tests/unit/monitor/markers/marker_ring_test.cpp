// SPDX-License-Identifier: Apache-2.0
#include "monitor/markers/marker_ring.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "monitor/procfs/process_handle.h"
#include "tests/support/in_child.h"
#include "tests/support/ring_file.h"

namespace tidemark::monitor {
namespace {

TEST(MarkerPlace, OfThisProcessIsWhereTheWritersPutIt) {
  const auto self = process_key_of("/proc", ::getpid());
  ASSERT_TRUE(self);
  const auto place = locate_markers(*self);

  ASSERT_TRUE(place) << place.error().what;
  EXPECT_TRUE(std::filesystem::equivalent(place->base, "/dev/shm"));
  EXPECT_EQ(place->directory, fmt::format("tidemark-{}", ::geteuid()));
  EXPECT_EQ(place->owner, ::geteuid());
  EXPECT_EQ(place->inner_pid, ::getpid());
  const auto name = parse_marker_file_name(place->prefix + "c.markers");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->pid, ::getpid());
  EXPECT_EQ(name->start_ticks, self->start_ticks);
}

TEST(MarkerPlace, OfADeadProcessIsGone) {
  const auto self = process_key_of("/proc", ::getpid());
  ASSERT_TRUE(self);
  const auto place = locate_markers({self->pid, self->start_ticks + 1});

  ASSERT_FALSE(place);
  EXPECT_EQ(place.error().code, Errc::kGone);
}

// Where the markers of a process are that has this $XDG_RUNTIME_DIR.
std::string base_of_markers(const char* runtime_directory) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::setenv("XDG_RUNTIME_DIR", runtime_directory, 1);
    ::execl("/bin/sleep", "sleep", "60", nullptr);
    ::_exit(1);
  }
  std::string base;
  for (int attempt = 0; attempt < 1000 && !base.ends_with(runtime_directory); ++attempt) {
    ::usleep(10'000);  // until it has called exec
    const auto key = process_key_of("/proc", pid);
    const auto place = key ? locate_markers(*key) : Result<MarkerPlace>(key.error());
    base = place ? place->base : place.error().what;
  }
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  return base;
}

TEST(MarkerPlace, IsAnotherOneWhereSomebodyHasTakenTheNameInSharedMemory) {
  const std::string base = tests::in_child([]() -> std::string {
    const bool is_root = ::geteuid() == 0;
    if (::unshare(CLONE_NEWNS | (is_root ? 0 : CLONE_NEWUSER)) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", "/dev/shm", "tmpfs", 0, "size=1m") != 0) {
      return "no mount";
    }
    ::mkdir(fmt::format("/dev/shm/tidemark-{}", ::geteuid()).c_str(), 0777);
    ::mkdir("/dev/shm/run", 0700);
    return base_of_markers("/dev/shm/run");
  });
  if (base == "no mount") {
    GTEST_SKIP() << "may not mount a tmpfs";
  }

  // Through the root folder of the process, /proc/PID/root.
  EXPECT_THAT(base, testing::EndsWith(fmt::format("/root{}", "/dev/shm/run")));
}

TEST(MarkerFileName, IsParsed) {
  const auto name = parse_marker_file_name("141495-153612-4026531836.py1.markers");

  ASSERT_TRUE(name);
  EXPECT_EQ(name->pid, 141495);
  EXPECT_EQ(name->start_ticks, 153612U);
  EXPECT_EQ(name->pid_namespace, 4026531836U);
  EXPECT_FALSE(name->draft);
}

TEST(MarkerFileName, KnowsDrafts) {
  const auto name = parse_marker_file_name("1-2-3.c.markers.7f00.new");

  ASSERT_TRUE(name);
  EXPECT_TRUE(name->draft);
}

TEST(MarkerFileName, RefusesForeignNames) {
  for (const char* name :
       {"", ".", "..", "1-2-3.c.marker", "1-2.c.markers", "-1-2-3.c.markers", "0-2-3.c.markers",
        "1-2-x.c.markers", "99999999999-2-3.c.markers", "1-2-3.markersx", ".markers", "a.new"}) {
    EXPECT_FALSE(parse_marker_file_name(name)) << name;
  }
}

TEST(UidMap, MapsIntoTheNamespace) {
  constexpr const char* kRootless =
      "         0       1000          1\n         1     100000      65536\n";

  EXPECT_EQ(map_uid_inside("         0          0 4294967295\n", 1000), 1000U);
  EXPECT_EQ(map_uid_inside(kRootless, 1000), 0U);
  EXPECT_EQ(map_uid_inside(kRootless, 100'999), 1000U);
  EXPECT_EQ(map_uid_inside(kRootless, 0), std::nullopt) << "not in the namespace";
  EXPECT_EQ(map_uid_inside("garbage\n", 0), std::nullopt);
  EXPECT_EQ(map_uid_inside("", 0), std::nullopt);
}

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using Pass = MarkerRing::Pass;

constexpr int kPid = 42;
constexpr std::uint64_t kStart = 1000;

class MarkerRingTest : public testing::Test {
 protected:
  MarkerRing open() {
    auto ring = MarkerRing::open(file_.reader(), kPid, kStart);
    TIDEMARK_CHECK(ring.has_value(), "the test's own ring is not readable");
    return std::move(*ring);
  }

  static std::vector<std::int64_t> steps(MarkerRing& ring, Pass pass = Pass::kMore) {
    std::vector<RingMarker> markers;
    ring.read(pass, markers);
    std::vector<std::int64_t> values;
    for (const RingMarker& marker : markers) {
      values.push_back(marker.value);
    }
    return values;
  }

  Errc refusal() { return MarkerRing::open(file_.reader(), kPid, kStart).error().code; }

  tests::RingFile file_{kPid, kStart};
};

TEST_F(MarkerRingTest, GivesEachRecordOnce) {
  MarkerRing ring = open();
  file_.step(1);
  file_.step(2);

  EXPECT_THAT(steps(ring), ElementsAre(1, 2));
  EXPECT_THAT(steps(ring), IsEmpty());
  file_.step(3);
  EXPECT_THAT(steps(ring), ElementsAre(3));
}

TEST_F(MarkerRingTest, GivesKindNameValueAndTime) {
  MarkerRing ring = open();
  file_.mark(TIDEMARK_KIND_PHASE_BEGIN, 0, std::string("e\0v", 3), 77);
  file_.mark(TIDEMARK_KIND_EPOCH, -3, {}, 78);

  std::vector<RingMarker> markers;
  ring.read(Pass::kMore, markers);

  ASSERT_THAT(markers, SizeIs(2));
  EXPECT_EQ(markers[0].kind, MarkerKind::kPhaseBegin);
  EXPECT_EQ(markers[0].name, std::string("e\0v", 3));
  EXPECT_EQ(markers[0].time_ns, 77U);
  EXPECT_EQ(markers[1].kind, MarkerKind::kEpoch);
  EXPECT_EQ(markers[1].value, -3);
}

TEST_F(MarkerRingTest, CountsWhatWasOverwrittenBeforeItWasRead) {
  MarkerRing ring = open();
  file_.step(0);
  steps(ring);

  for (int n = 1; n <= 10'000; ++n) {
    file_.step(n);
  }
  const auto values = steps(ring);

  EXPECT_EQ(values.back(), 10'000);
  EXPECT_EQ(ring.take_lost() + values.size(), 10'000U);
  EXPECT_EQ(ring.take_lost(), 0U) << "told once";
}

TEST_F(MarkerRingTest, DoesNotCountWhatWasOverwrittenBeforeItCame) {
  for (int n = 1; n <= 10'000; ++n) {
    file_.step(n);
  }
  MarkerRing ring = open();

  EXPECT_EQ(steps(ring).back(), 10'000);
  EXPECT_EQ(ring.take_lost(), 0U);
}

TEST_F(MarkerRingTest, WaitsForARecordThatIsBeingWritten) {
  MarkerRing ring = open();
  file_.step(1);
  file_.reserve();
  file_.step(3);

  EXPECT_THAT(steps(ring), ElementsAre(1));
  tidemark_ring_record late{};
  late.sequence = 2;
  late.kind = TIDEMARK_KIND_STEP;
  late.value = 2;
  file_.put_record(1, late);
  EXPECT_THAT(steps(ring), ElementsAre(2, 3));
  EXPECT_EQ(ring.take_lost(), 0U);
}

TEST_F(MarkerRingTest, GivesUpARecordThatNobodyFinishes) {
  MarkerRing ring = open();
  file_.reserve();
  file_.step(2);

  EXPECT_THAT(steps(ring), IsEmpty());
  EXPECT_THAT(steps(ring), ElementsAre(2));
  EXPECT_EQ(ring.take_lost(), 1U);
}

TEST_F(MarkerRingTest, DoesNotWaitForTheDead) {
  MarkerRing ring = open();
  file_.reserve();
  file_.step(2);

  EXPECT_THAT(steps(ring, Pass::kLast), ElementsAre(2));
  EXPECT_EQ(ring.take_lost(), 1U);
}

TEST_F(MarkerRingTest, CountsDamagedRecordsAsLost) {
  MarkerRing ring = open();
  file_.mark(99, 0, {}, 1);
  tidemark_ring_record long_name{};
  long_name.sequence = 2;
  long_name.kind = TIDEMARK_KIND_PHASE_BEGIN;
  long_name.name_bytes = 33;
  file_.put_record(1, long_name);
  file_.reserve();
  file_.step(3);

  EXPECT_THAT(steps(ring), ElementsAre(3));
  EXPECT_EQ(ring.take_lost(), 2U);
}

TEST_F(MarkerRingTest, SurvivesAFileThatIsCutUnderIt) {
  MarkerRing ring = open();
  file_.step(1);

  file_.truncate(100);
  EXPECT_THAT(steps(ring), IsEmpty());
  file_.truncate(0);
  EXPECT_THAT(steps(ring), IsEmpty());
  EXPECT_EQ(ring.latest(MarkerKind::kStep), std::nullopt);
}

TEST_F(MarkerRingTest, SurvivesACountThatJumps) {
  MarkerRing ring = open();
  file_.header.next = UINT64_MAX;
  file_.put();
  EXPECT_THAT(steps(ring, Pass::kLast), IsEmpty());

  file_.header.next = 0;
  file_.put();
  EXPECT_THAT(steps(ring), IsEmpty());
}

TEST_F(MarkerRingTest, KnowsTheLatestStepFromTheHeader) {
  file_.header.step = 5000;
  file_.header.step_time_ns = 9;
  file_.put();
  MarkerRing ring = open();

  ASSERT_TRUE(ring.latest(MarkerKind::kStep));
  EXPECT_EQ(ring.latest(MarkerKind::kStep)->value, 5000);
  EXPECT_EQ(ring.latest(MarkerKind::kStep)->time_ns, 9U);
  EXPECT_FALSE(ring.latest(MarkerKind::kEpoch)) << "none so far is not epoch 0";
}

TEST_F(MarkerRingTest, RefusesWhatIsNoRing) {
  file_.header.magic = 0;
  file_.put();
  EXPECT_EQ(refusal(), Errc::kMalformed);
}

TEST_F(MarkerRingTest, RefusesALaterVersion) {
  file_.header.version = 2;
  file_.put();
  EXPECT_EQ(refusal(), Errc::kUnsupported);
}

TEST_F(MarkerRingTest, RefusesTheRingOfAnotherProcess) {
  file_.header.start_ticks = kStart + 1;
  file_.put();
  EXPECT_EQ(refusal(), Errc::kNotFound);
}

TEST_F(MarkerRingTest, RefusesSizesThatMakeNoSense) {
  for (const std::uint32_t capacity : {0U, 3U, 2 * TIDEMARK_RING_CAPACITY, UINT32_MAX}) {
    file_.header.capacity = capacity;
    file_.put();
    EXPECT_EQ(refusal(), Errc::kMalformed) << capacity;
  }
}

}  // namespace
}  // namespace tidemark::monitor
