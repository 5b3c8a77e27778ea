// SPDX-License-Identifier: Apache-2.0
// MarkerReader on real processes that mark through api/tidemark.h and api/tidemark.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "common/clock.h"
#include "monitor/markers/markers.h"
#include "monitor/procfs/process_handle.h"
#include "tests/support/marker_dump.h"
#include "tests/support/subprocess.h"
#include "tests/support/temp_tree.h"

namespace tidemark::monitor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using tests::marker_files;
using tests::Subprocess;

const std::string kMarking = TIDEMARK_BINARY_DIR "/tests/programs/marking_program";

class RealMarkers : public testing::Test {
 protected:
  MarkerReader make_reader() const {
    MarkerReader::Options options;
    options.run_start_ns = start_ns_;
    options.scan_every_ns = 0;
    return MarkerReader(options);
  }

  static ProcessKey key_of(pid_t pid) {
    const auto key = process_key_of("/proc", pid);
    TIDEMARK_CHECK(key.has_value(), "the test's child is gone");
    return *key;
  }

  std::vector<std::int64_t> poll(MarkerReader& reader, const std::vector<ProcessKey>& keys) {
    records_.clear();
    reader.poll(keys, clock_.monotonic_ns(), records_);
    std::vector<std::int64_t> values;
    for (const MarkerRecord& record : records_) {
      values.push_back(record.value);
    }
    return values;
  }

  // Lets the process end by itself, and leaves no file behind.
  void end(Subprocess& process, MarkerReader& reader) {
    process.close_input();
    process.wait();
    reader.finish(clock_.monotonic_ns(), records_);
  }

  SystemClock clock_;
  std::int64_t start_ns_ = clock_.monotonic_ns();
  std::vector<MarkerRecord> records_;
};

TEST_F(RealMarkers, OfACProgramArrive) {
  Subprocess process({kMarking, "1", "2", "3"});
  process.read_until("ready");
  MarkerReader reader = make_reader();

  EXPECT_THAT(poll(reader, {key_of(process.pid())}), ElementsAre(1, 2, 3));
  EXPECT_GE(records_[0].t_s, 0.0);
  EXPECT_LE(records_[2].t_s, to_seconds(clock_.monotonic_ns() - start_ns_));
  EXPECT_EQ(reader.take_lost(), 0U);
  end(process, reader);
}

TEST_F(RealMarkers, OfAPythonProgramArrive) {
  Subprocess process({"/usr/bin/env", "python3", "-B", "-c",
                      "import sys; sys.path.insert(0, '" TIDEMARK_SOURCE_DIR "/api'); "
                      "import tidemark; tidemark.epoch(2); tidemark.step(7); "
                      "tidemark.phase_begin('eval'); print('ready', flush=True); input()"});
  process.read_until("ready");
  MarkerReader reader = make_reader();

  EXPECT_THAT(poll(reader, {key_of(process.pid())}), ElementsAre(2, 7, 0));
  EXPECT_EQ(records_[0].kind, MarkerKind::kEpoch);
  EXPECT_EQ(records_[2].name, "eval");
  end(process, reader);
}

TEST_F(RealMarkers, BeforeTheRunShrinkToTheCurrentStep) {
  Subprocess process({kMarking, "1", "2", "3"});
  process.read_until("ready");
  start_ns_ = clock_.monotonic_ns();
  MarkerReader reader = make_reader();

  EXPECT_THAT(poll(reader, {key_of(process.pid())}), ElementsAre(3));
  EXPECT_LT(records_[0].t_s, 0.0);
  end(process, reader);
}

TEST_F(RealMarkers, GoOnInTheSameFileAfterExec) {
  Subprocess process({kMarking, "1", "exec", kMarking, "2"});
  process.read_until("ready\n");
  MarkerReader reader = make_reader();
  const ProcessKey key = key_of(process.pid());
  EXPECT_THAT(poll(reader, {key}), ElementsAre(1));

  process.send("\n");
  process.read_until("ready\nready\n");

  EXPECT_THAT(poll(reader, {key}), ElementsAre(2));
  EXPECT_THAT(marker_files(process.pid()), SizeIs(1));
  end(process, reader);
}

TEST_F(RealMarkers, OfACrashedProcessAreReadAndTheirFileRemoved) {
  Subprocess process({kMarking, "5", "crash"});
  process.read_until("ready");
  const pid_t pid = process.pid();
  MarkerReader reader = make_reader();
  poll(reader, {key_of(pid), key_of(::getpid())});
  process.send("\n");
  siginfo_t how{};
  ::waitid(P_PID, static_cast<id_t>(pid), &how, WEXITED | WNOWAIT);
  EXPECT_THAT(marker_files(pid), SizeIs(1)) << "nobody removes that of a zombie";
  EXPECT_EQ(process.wait(), 128 + SIGABRT);

  std::vector<MarkerRecord> last;
  reader.finish(clock_.monotonic_ns(), last);

  EXPECT_THAT(marker_files(pid), IsEmpty());
}

TEST_F(RealMarkers, OfAContainerArrive) {
  // Another pid, another /dev/shm.
  Subprocess process({"unshare", "--pid", "--fork", "--mount", "--mount-proc", "--kill-child", "sh",
                      "-c", "mount -t tmpfs none /dev/shm && exec \"$0\" 41", kMarking});
  if (process.read_until("ready").find("ready") == std::string::npos) {
    GTEST_SKIP() << "may not make namespaces";
  }
  const auto parent = ProcessHandle::open("/proc", key_of(process.pid()));
  ASSERT_TRUE(parent);
  const auto children = parent->children();
  ASSERT_TRUE(children);
  ASSERT_THAT(*children, SizeIs(1));
  MarkerReader reader = make_reader();

  EXPECT_THAT(poll(reader, {key_of(children->front())}), ElementsAre(41));
  EXPECT_EQ(records_[0].key.pid, children->front());
  end(process, reader);
}

TEST_F(RealMarkers, AreFoundInTheRuntimeDirectoryWhereThereIsNoDevShm) {
  const tests::TempTree runtime;
  Subprocess process({"env", "XDG_RUNTIME_DIR=" + runtime.path(), "unshare", "--mount", "sh", "-c",
                      "mount -t tmpfs none /dev && exec \"$0\" 41", kMarking});
  if (process.read_until("ready").find("ready") == std::string::npos) {
    GTEST_SKIP() << "may not make namespaces";
  }
  MarkerReader reader = make_reader();

  EXPECT_THAT(poll(reader, {key_of(process.pid())}), ElementsAre(41));
  end(process, reader);
}

}  // namespace
}  // namespace tidemark::monitor
