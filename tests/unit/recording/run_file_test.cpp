// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "common/io.h"
#include "recording/files.h"
#include "recording/open.h"
#include "recording/run_reader.h"
#include "recording/run_writer.h"
#include "tests/support/child_process.h"
#include "tests/support/memory_sink.h"
#include "tests/support/record_text.h"
#include "tests/support/sample_run.h"
#include "tests/support/temp_tree.h"

namespace tidemark::recording {
namespace {

using testing::HasSubstr;
using tests::empty_tick;
using tests::full_run_info;
using tests::full_tick;
using tests::MemorySink;
using tests::plain_tick;
using tests::TempTree;
using tests::text_of;

std::string content_of(const std::string& path) {
  auto text = read_file(path);
  return text ? *text : text.error().what;
}

std::unique_ptr<RunWriter> make_writer(const std::string& path, RunWriterOptions options = {}) {
  auto writer = RunWriter::create(path, options);
  EXPECT_TRUE(writer) << (writer ? "" : writer.error().what);
  return writer ? std::move(*writer) : nullptr;
}

void record_plain_run(const std::string& path, std::uint64_t ticks) {
  const auto writer = make_writer(path);
  ASSERT_TRUE(writer->begin(full_run_info()));
  for (std::uint64_t n = 0; n < ticks; ++n) {
    ASSERT_TRUE(writer->add(plain_tick(n)));
  }
  ASSERT_TRUE(writer->end(static_cast<double>(ticks)));
}

ReadSummary read_all(const std::string& path, MemorySink& sink) {
  auto reader = RunReader::open(path);
  EXPECT_TRUE(reader) << (reader ? "" : reader.error().what);
  if (!reader) {
    return {};
  }
  auto summary = (*reader)->read(sink);
  EXPECT_TRUE(summary) << (summary ? "" : summary.error().what);
  return summary ? *summary : ReadSummary{};
}

TEST(RunFile, GivesBackEveryFieldOfEveryRecord) {
  const TempTree dir;
  const auto writer = make_writer(dir.path("run.tidemark"));
  ASSERT_TRUE(writer->begin(full_run_info()));
  ASSERT_TRUE(writer->add(full_tick()));
  ASSERT_TRUE(writer->add(empty_tick(2.5)));
  ASSERT_TRUE(writer->end(2.75));

  MemorySink sink;
  const ReadSummary summary = read_all(dir.path("run.tidemark"), sink);

  RunInfo expected = full_run_info();
  expected.ended_cleanly = true;
  EXPECT_EQ(text_of(sink.info), text_of(expected));
  ASSERT_EQ(sink.ticks.size(), 2U);
  EXPECT_EQ(text_of(sink.ticks[0]), text_of(full_tick()));
  EXPECT_EQ(text_of(sink.ticks[1]), text_of(empty_tick(2.5)));
  EXPECT_EQ(sink.end_s, 2.75);
  EXPECT_EQ(sink.calls, "btte");
  EXPECT_EQ(summary.ticks, 2U);
  EXPECT_EQ(summary.samples, 2U);
  EXPECT_TRUE(summary.notes.empty());
}

TEST(RunFile, DeliversTheEndOfAProcessWhenItsTimeComes) {
  const TempTree dir;
  const auto writer = make_writer(dir.path("run"));
  ASSERT_TRUE(writer->begin(full_run_info()));
  ASSERT_TRUE(writer->add(full_tick()));
  ProcessRecord dead = tests::worker_record();
  dead.exited_s = 2.0;
  dead.exit_status = 9;
  ASSERT_TRUE(writer->process_ended(dead));
  ASSERT_TRUE(writer->add(empty_tick(2.0)));
  ASSERT_TRUE(writer->add(empty_tick(3.0)));
  ASSERT_TRUE(writer->end(3.0));

  MemorySink sink;
  read_all(dir.path("run"), sink);

  EXPECT_EQ(sink.calls, "bttpte");
  ASSERT_EQ(sink.ended.size(), 1U);
  EXPECT_EQ(text_of(sink.ended[0]), text_of(dead));
}

TEST(RunFile, TakesTheLastLookAtATracedProcessAfterItsEnd) {
  const TempTree dir;
  const auto writer = make_writer(dir.path("run"));
  ASSERT_TRUE(writer->begin(full_run_info()));
  Tick first = plain_tick(0);
  first.allocations.traces = {tests::trace_sample(tests::trainer_record().key, 0.0)};
  ASSERT_TRUE(writer->add(first));
  ProcessRecord dead = tests::trainer_record();
  dead.exited_s = 1.0;
  ASSERT_TRUE(writer->process_ended(dead));
  ASSERT_TRUE(writer->add(empty_tick(1.0)));
  Tick last = empty_tick(2.0);
  last.allocations.traces = {tests::trace_sample(tests::trainer_record().key, 1.5)};
  last.allocations.traces[0].has_ended = true;
  ASSERT_TRUE(writer->add(last));
  ASSERT_TRUE(writer->end(2.0));

  MemorySink sink;
  read_all(dir.path("run"), sink);

  ASSERT_EQ(sink.ticks.size(), 3U);
  EXPECT_TRUE(sink.ticks[2].new_processes.empty());
  ASSERT_EQ(sink.ticks[2].allocations.traces.size(), 1U);
  EXPECT_EQ(sink.ticks[2].allocations.traces[0].key, tests::trainer_record().key);
}

TEST(RunFile, KnowsAStackThatWasNamedLaterFromTheBeginning) {
  const TempTree dir;
  const auto writer = make_writer(dir.path("run"));
  ASSERT_TRUE(writer->begin(full_run_info()));
  Tick first = plain_tick(0);
  first.allocations.sites = {{1, tests::trainer_record().key, AllocationKind::kHeap, false, {}}};
  ASSERT_TRUE(writer->add(first));
  Tick later = empty_tick(2.0);
  later.allocations.sites = {
      {1, tests::trainer_record().key, AllocationKind::kHeap, false, {5, 6}}};
  ASSERT_TRUE(writer->add(later));
  ASSERT_TRUE(writer->end(2.0));

  MemorySink sink;
  read_all(dir.path("run"), sink);

  ASSERT_EQ(sink.ticks[0].allocations.sites.size(), 1U);
  EXPECT_EQ(sink.ticks[0].allocations.sites[0].frames, (std::vector<std::uint32_t>{5, 6}));
  EXPECT_TRUE(sink.ticks[1].allocations.sites.empty());
}

TEST(RunFile, KeepsOnlyTheLastAgesOfASite) {
  const TempTree dir;
  const auto writer = make_writer(dir.path("run"));
  ASSERT_TRUE(writer->begin(full_run_info()));
  ASSERT_TRUE(writer->add(full_tick()));
  Tick later = empty_tick(2.0);
  later.allocations.ages = {{1, {{false, 7.5, 9}}}};
  ASSERT_TRUE(writer->add(later));
  ASSERT_TRUE(writer->end(2.0));

  MemorySink sink;
  read_all(dir.path("run"), sink);

  EXPECT_TRUE(sink.ticks[0].allocations.ages.empty());
  ASSERT_EQ(sink.ticks[1].allocations.ages.size(), 1U);
  EXPECT_EQ(sink.ticks[1].allocations.ages[0].intervals.size(), 1U);
}

TEST(RunFile, KeepsAProcessThatCameAndWentBetweenTwoTicksAsOne) {
  const TempTree dir;
  const auto writer = make_writer(dir.path("run"));
  ASSERT_TRUE(writer->begin(full_run_info()));
  ASSERT_TRUE(writer->add(plain_tick(0)));
  ProcessRecord dead = tests::worker_record();
  dead.exited_s = 1.75;
  ASSERT_TRUE(writer->process_ended(dead));
  Tick late = empty_tick(3.0);
  late.new_processes = {tests::worker_record()};  // of a tick that was dropped
  ASSERT_TRUE(writer->add(late));
  ASSERT_TRUE(writer->add(empty_tick(4.0)));
  ASSERT_TRUE(writer->end(4.0));

  MemorySink sink;
  read_all(dir.path("run"), sink);

  EXPECT_EQ(sink.calls, "bttpte");
  ASSERT_EQ(sink.ticks.size(), 3U);
  EXPECT_EQ(text_of(sink.ticks[1]), text_of(late));
  ASSERT_EQ(sink.ended.size(), 1U);
  EXPECT_EQ(text_of(sink.ended[0]), text_of(dead));
}

TEST(RunFile, KeepsBothLivesOfAProcessThatExecs) {
  const TempTree dir;
  const auto writer = make_writer(dir.path("run"));
  ASSERT_TRUE(writer->begin(full_run_info()));
  ASSERT_TRUE(writer->add(plain_tick(0)));
  Tick after_exec = plain_tick(1);
  ProcessRecord changed = tests::trainer_record();
  changed.comm = "bash";
  changed.role = Role::kWrapper;
  after_exec.new_processes = {changed};
  ASSERT_TRUE(writer->add(after_exec));
  ASSERT_TRUE(writer->end(1.0));

  MemorySink sink;
  read_all(dir.path("run"), sink);

  ASSERT_EQ(sink.ticks.size(), 2U);
  EXPECT_EQ(text_of(sink.ticks[0]), text_of(plain_tick(0)));
  EXPECT_EQ(text_of(sink.ticks[1]), text_of(after_exec));
}

TEST(RunFile, GivesAProcessThatNobodyIntroducedARowOfItsOwn) {
  const TempTree dir;
  const auto writer = make_writer(dir.path("run"));
  ASSERT_TRUE(writer->begin(full_run_info()));
  ASSERT_TRUE(writer->add(plain_tick(1)));  // only tick 0 introduces
  ASSERT_TRUE(writer->end(1.0));

  MemorySink sink;
  read_all(dir.path("run"), sink);

  ASSERT_EQ(sink.ticks.size(), 1U);
  ASSERT_EQ(sink.ticks[0].new_processes.size(), 1U);
  EXPECT_EQ(sink.ticks[0].new_processes[0].key, tests::trainer_record().key);
  EXPECT_EQ(sink.ticks[0].processes.size(), 1U);
}

TEST(RunFile, IsOnePrivateFileAfterACleanEnd) {
  const TempTree dir;
  const mode_t previous = ::umask(0777);
  record_plain_run(dir.path("run"), 3);
  ::umask(previous);

  struct stat info {};
  ASSERT_EQ(::stat(dir.path("run").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0600U);
  EXPECT_NE(::access(dir.path("run-wal").c_str(), F_OK), 0);
  EXPECT_NE(::access(dir.path("run-shm").c_str(), F_OK), 0);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 1);
}

TEST(RunFile, CanBeReadWhileItIsBeingRecorded) {
  const TempTree dir;
  const auto writer = make_writer(dir.path("run"));
  ASSERT_TRUE(writer->begin(full_run_info()));
  ASSERT_TRUE(writer->add(plain_tick(0)));
  ASSERT_TRUE(writer->add(plain_tick(1)));

  MemorySink sink;
  const ReadSummary summary = read_all(dir.path("run"), sink);

  EXPECT_EQ(sink.ticks.size(), 2U);
  EXPECT_FALSE(sink.info.ended_cleanly);
  EXPECT_EQ(summary.notes.size(), 1U);
  ASSERT_TRUE(writer->add(plain_tick(2)));
  ASSERT_TRUE(writer->end(2.0));
  EXPECT_TRUE(writer->is_one_file());
}

TEST(RunFile, IsCompleteWithoutItsLogEvenWhenAnotherProgramHasItOpen) {
  const TempTree dir;
  const auto writer = make_writer(dir.path("run"));
  ASSERT_TRUE(writer->begin(full_run_info()));
  ASSERT_TRUE(writer->add(plain_tick(0)));
  auto other = Database::open(dir.path("run"), Database::Mode::kReadOnly);
  ASSERT_TRUE(other && other->query_integer("SELECT count(*) FROM ticks"));
  ASSERT_TRUE(writer->add(plain_tick(1)));

  ASSERT_TRUE(writer->end(1.0));

  EXPECT_FALSE(writer->is_one_file());
  dir.write("copy", content_of(dir.path("run")));
  MemorySink sink;
  const ReadSummary summary = read_all(dir.path("copy"), sink);
  EXPECT_EQ(sink.ticks.size(), 2U);
  EXPECT_TRUE(sink.info.ended_cleanly);
  EXPECT_TRUE(summary.notes.empty());
}

TEST(RunFile, SaysThatARecordingWithoutEndDidNotEndCleanly) {
  const TempTree dir;
  {
    const auto writer = make_writer(dir.path("run"));
    ASSERT_TRUE(writer->begin(full_run_info()));
    ASSERT_TRUE(writer->add(plain_tick(0)));
  }

  MemorySink sink;
  const ReadSummary summary = read_all(dir.path("run"), sink);

  EXPECT_EQ(sink.end_s, 0.0);
  EXPECT_THAT(summary.notes, testing::ElementsAre(HasSubstr("did not end cleanly")));
}

TEST(RunFile, IsNotChangedByReadingIt) {
  const TempTree dir;
  record_plain_run(dir.path("run"), 3);
  const std::string before = content_of(dir.path("run"));

  MemorySink sink;
  read_all(dir.path("run"), sink);

  EXPECT_EQ(content_of(dir.path("run")), before);
}

TEST(RunFile, HandsOnTheErrorOfTheSink) {
  const TempTree dir;
  record_plain_run(dir.path("run"), 3);
  MemorySink sink;
  sink.fail_at_tick = 2;

  const auto summary = (*RunReader::open(dir.path("run")))->read(sink);

  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().what, "the sink is full");
  EXPECT_EQ(sink.calls, "bt");
}

TEST(RunWriter, DoesNotOverwriteAFile) {
  const TempTree dir;
  const std::string path = dir.path("notes.txt");
  dir.write("notes.txt", "precious");

  const auto writer = RunWriter::create(path);

  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().what, "cannot create " + path +
                                     ": File exists; choose another name, or replace it with "
                                     "--force");
  EXPECT_EQ(content_of(path), "precious");
}

TEST(RunWriter, TakesADashForNoName) {
  const auto writer = RunWriter::create("-");

  ASSERT_FALSE(writer);
  EXPECT_THAT(writer.error().what, HasSubstr("cannot be written to standard output"));
}

TEST(RunWriter, RefusesAFileThatAppearsBeforeItBegins) {
  const TempTree dir;
  const auto writer = make_writer(dir.path("run"));
  dir.write("run", "precious");

  const Status status = writer->begin(full_run_info());

  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().what, HasSubstr("File exists"));
  EXPECT_EQ(content_of(dir.path("run")), "precious");
}

TEST(RunWriter, ReplacesAFileAndItsLeftOverLogWhenTold) {
  const TempTree dir;
  dir.write("run", "old");
  dir.write("run-wal", "old log");
  ASSERT_FALSE(RunWriter::create(dir.path("run")));

  const auto writer = make_writer(dir.path("run"), {.replace = true});
  ASSERT_TRUE(writer->begin(full_run_info()));
  ASSERT_TRUE(writer->add(plain_tick(0)));
  ASSERT_TRUE(writer->end(0.0));

  MemorySink sink;
  read_all(dir.path("run"), sink);
  EXPECT_EQ(sink.ticks.size(), 1U);
}

TEST(RunWriter, TreatsALeftOverLogAsAFileInTheWay) {
  const TempTree dir;
  dir.write("run-wal", "of another recording");

  const auto writer = RunWriter::create(dir.path("run"));

  ASSERT_FALSE(writer);
  EXPECT_THAT(writer.error().what, HasSubstr("run-wal: File exists"));
}

TEST(RunWriter, NeverReplacesWhatIsNotARegularFile) {
  const auto writer = RunWriter::create("/dev/null", {.replace = true});

  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().what, "/dev/null is not a regular file: it is not replaced");
}

// Both were told to replace it, and neither had begun when the other looked.
TEST(RunWriter, TwoThatReplaceOneFileDoNotWriteIntoItTogether) {
  const TempTree dir;
  auto writer = RunWriter::create(dir.path("run"), {.replace = true});
  ASSERT_TRUE(writer) << writer.error().what;
  tests::ChildProcess other([&](const tests::ChildProcess::Link& link) {
    auto recorder = RunWriter::create(dir.path("run"), {.replace = true});
    if (recorder && (*recorder)->begin(full_run_info())) {
      link.signal_ready();
    }
    link.wait_for_order();
  });
  ASSERT_TRUE(other.wait_ready());

  const Status begun = (*writer)->begin(full_run_info());

  ASSERT_FALSE(begun);
  EXPECT_THAT(begun.error().what, HasSubstr("in use by process " + std::to_string(other.pid())));
}

TEST(RunWriter, DoesNotWaitForEverForAFolderThatSomebodyLocks) {
  const TempTree dir;
  const Fd held = lock_folder_of(dir.path("run"));
  auto writer = RunWriter::create(dir.path("run"));
  ASSERT_TRUE(writer) << writer.error().what;

  EXPECT_TRUE((*writer)->begin(full_run_info()));
}

TEST(RunWriter, NeverReplacesAFileThatAnotherProcessRecordsTo) {
  const TempTree dir;
  tests::ChildProcess other([&](const tests::ChildProcess::Link& link) {
    auto recorder = RunWriter::create(dir.path("run"));
    if (recorder && (*recorder)->begin(full_run_info())) {
      link.signal_ready();
    }
    link.wait_for_order();
  });
  ASSERT_TRUE(other.wait_ready());

  const auto writer = RunWriter::create(dir.path("run"), {.replace = true});

  ASSERT_FALSE(writer);
  EXPECT_THAT(writer.error().what, HasSubstr("in use by process " + std::to_string(other.pid())));
}

TEST(RunWriter, NamesThePathWhenTheFolderIsMissing) {
  const TempTree dir;

  const auto writer = RunWriter::create(dir.path("no/such/run"));

  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().what,
            "cannot create " + dir.path("no/such/run") + ": No such file or directory");
}

TEST(RunWriter, NoticesThatItsFileWasMovedAway) {
  const TempTree dir;
  const auto writer = make_writer(dir.path("run"));
  ASSERT_TRUE(writer->begin(full_run_info()));
  ASSERT_TRUE(writer->add(plain_tick(0)));
  ASSERT_EQ(::rename(dir.path("run").c_str(), dir.path("elsewhere").c_str()), 0);

  const Status status = writer->add(plain_tick(1));

  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::kGone);
  EXPECT_EQ(status.error().what,
            dir.path("run") + " was moved, removed or replaced; recording stopped");
}

TEST(RunWriter, LeavesNothingBehindWhenItNeverBegan) {
  const TempTree dir;

  make_writer(dir.path("run")).reset();

  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(RunWriter, TakesPathsLiterally) {
  const TempTree dir;
  const std::string previous = std::filesystem::current_path();
  std::filesystem::current_path(dir.path());

  record_plain_run(":memory:", 1);

  std::filesystem::current_path(previous);
  EXPECT_TRUE(std::filesystem::exists(dir.path(":memory:")));
}

TEST(RunFile, IsToldFromOtherRecordings) {
  const TempTree dir;
  record_plain_run(dir.path("run.tidemark"), 3);
  dir.write("log.csv", "step,rss_mb\n1,100\n");

  EXPECT_TRUE(is_run_file(dir.path("run.tidemark")));
  EXPECT_FALSE(is_run_file(dir.path("log.csv")));
  EXPECT_FALSE(is_run_file(dir.path("missing")));
  EXPECT_FALSE(is_run_file(dir.path()));
  EXPECT_FALSE(is_run_file("-")) << "it cannot be read twice";
  EXPECT_FALSE(is_run_file("/dev/stdin"));
}

}  // namespace
}  // namespace tidemark::recording
