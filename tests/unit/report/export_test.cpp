// SPDX-License-Identifier: Apache-2.0
#include "report/export.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/exit_code.h"
#include "common/fd.h"
#include "common/io.h"
#include "common/text.h"
#include "recording/open.h"
#include "recording/run_writer.h"
#include "recording/sqlite.h"
#include "tests/support/memory_sink.h"
#include "tests/support/record_text.h"
#include "tests/support/sample_run.h"
#include "tests/support/temp_tree.h"

namespace tidemark::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using tests::MemorySink;
using tests::TempTree;
using tests::text_of;

void record(const std::string& path) {
  auto writer = recording::RunWriter::create(path);
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->begin(tests::full_run_info()));
  ASSERT_TRUE((*writer)->add(tests::full_tick()));
  ASSERT_TRUE((*writer)->add(tests::empty_tick(2.5)));
  ASSERT_TRUE((*writer)->end(2.75));
}

MemorySink read_back(const std::string& path) {
  MemorySink sink;
  auto reader = recording::open_recording(path);
  EXPECT_TRUE(reader) << (reader ? "" : reader.error().what);
  if (reader) {
    EXPECT_TRUE((*reader)->read(sink));
  }
  return sink;
}

// Runs the command; what it said on stderr.
std::string run(const ExportOptions& options, int expected_exit) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_export(options), expected_exit);
  return testing::internal::GetCapturedStderr();
}

std::vector<std::string> lines_of(const std::string& path) {
  const std::string text = *read_file(path);
  std::string_view rest = text;
  std::vector<std::string> lines;
  while (const auto line = next_line(rest)) {
    lines.emplace_back(*line);
  }
  return lines;
}

TEST(Export, WritesCsvThatItsOwnImporterReadsBack) {
  const TempTree dir;
  record(dir.path("run"));

  EXPECT_EQ(run({dir.path("run"), "csv", dir.path("run.csv"), false}, kExitOk), "");
  const MemorySink run = read_back(dir.path("run.csv"));

  ASSERT_EQ(run.ticks.size(), 2U);
  const Tick original = tests::full_tick();
  const Tick& tick = run.ticks[0];
  EXPECT_EQ(tick.t_s, original.t_s);
  EXPECT_EQ(tick.step, original.step);
  EXPECT_EQ(tick.epoch, original.epoch);
  ASSERT_EQ(tick.processes.size(), 2U);
  EXPECT_EQ(text_of(tick.processes[0]), text_of(original.processes[0]));
  EXPECT_EQ(text_of(tick.processes[1]), text_of(original.processes[1]));
  EXPECT_EQ(tick.tree.footprint_bytes, original.tree.footprint_bytes);
  EXPECT_EQ(tick.tree.rss_bytes, original.tree.rss_bytes);
  EXPECT_EQ(tick.tree.pss_bytes, original.tree.pss_bytes);
  EXPECT_EQ(tick.tree.processes, original.tree.processes);
  ASSERT_EQ(tick.roles.size(), 2U);
  EXPECT_EQ(tick.roles[1].role, Role::kRank);
  EXPECT_EQ(tick.roles[1].sum.footprint_bytes, original.roles[1].sum.footprint_bytes);
  EXPECT_EQ(tick.new_processes.at(1).rank, 3);
  EXPECT_EQ(tick.new_processes.at(1).ppid, 101);
  EXPECT_EQ(tick.new_processes.at(1).comm, "pt\\xff\\x01 \"x\"");  // names are escaped for people
  EXPECT_EQ(run.ticks[1].tree.processes, 0U);
}

TEST(Export, WritesUnknownAsAnEmptyField) {
  const TempTree dir;
  record(dir.path("run"));

  run({dir.path("run"), "csv", dir.path("run.csv"), false}, kExitOk);

  EXPECT_EQ(lines_of(dir.path("run.csv")).at(2),
            "1.5,7,1,process,102,5001,101,rank,3,\"pt\\xff\\x01 \"\"x\"\"\",,?,,,,,,,,,,,,");
}

TEST(Export, WritesASumOfNothingKnownAsUnknown) {
  const TempTree dir;
  dir.write("pss.csv", "t_s,pss_mb\n0,5\n");

  run({dir.path("pss.csv"), "csv", dir.path("out.csv"), false}, kExitOk);
  run({dir.path("pss.csv"), "jsonl", dir.path("out.jsonl"), false}, kExitOk);
  const auto rows = lines_of(dir.path("out.csv"));

  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[2], "0,,,role,,,,trainer,,,1,,,,,,,,,5242880,,,,");
  EXPECT_EQ(rows[3], "0,,,tree,,,,,,,1,,,,,,,,,5242880,,,,");
  EXPECT_THAT(*read_file(dir.path("out.jsonl")), testing::Not(HasSubstr(R"("swap_bytes":0)")));
}

TEST(Export, WritesOneJsonLineForEachTickEventAndTheSummary) {
  const TempTree dir;
  record(dir.path("run"));

  run({dir.path("run"), "jsonl", dir.path("run.jsonl"), false}, kExitOk);

  EXPECT_THAT(lines_of(dir.path("run.jsonl")),
              ElementsAre(StartsWith(R"({"schema":1,"kind":"run","t_s":0,)"),
                          StartsWith(R"({"schema":1,"kind":"event","t_s":1.5,"event":"spawn",)"),
                          StartsWith(R"({"schema":1,"kind":"tick","t_s":1.5,)"),
                          StartsWith(R"({"schema":1,"kind":"tick","t_s":2.5,)"),
                          StartsWith(R"({"schema":1,"kind":"summary","t_s":2.5,)")));
}

TEST(Export, PutsEveryFieldOfATickIntoItsJson) {
  const TempTree dir;
  record(dir.path("run"));

  run({dir.path("run"), "jsonl", dir.path("run.jsonl"), false}, kExitOk);
  const std::string tick = lines_of(dir.path("run.jsonl")).at(2);

  EXPECT_THAT(tick, HasSubstr(R"("step":7,"epoch":1,"tree":{"processes":2,"rss_bytes":3000000,)"
                              R"("footprint_bytes":2500000,"footprint_held":true,)"
                              R"("pss_bytes":2600000,"swap_bytes":1000,"unreadable":1},)"
                              R"("roles":{"trainer":{"count":1,)"));
  EXPECT_THAT(tick, HasSubstr(R"({"pid":101,"start_ticks":5000,"ppid":100,"role":"trainer",)"
                              R"("comm":"python3","state":"S","threads":10,"rss_bytes":1,)"
                              R"("rss_anon_bytes":2,"rss_file_bytes":3,"rss_shmem_bytes":4,)"
                              R"("swap_bytes":5,"hwm_bytes":6,"footprint_bytes":11,)"
                              R"("pss_bytes":7,"pss_footprint_bytes":8,"uss_bytes":9,)"
                              R"("pss_age_s":0.75})"));
  EXPECT_THAT(tick, HasSubstr(R"("system":{"total_bytes":1,"available_bytes":2,)"));
  EXPECT_THAT(tick, HasSubstr(R"("used_bytes":11,"total_bytes":12,"reserved_bytes":1,)"
                              R"("busy_percent":87,"age_s":2.5,"lost":false,"processes":[)"
                              R"({"pid":101,"used_bytes":13},{"pid":102,"used_bytes":null}]})"));
  EXPECT_THAT(tick, HasSubstr(R"("markers":[{"t_s":1.25,"marker":"step","pid":101,"value":7},)"
                              R"({"t_s":1.3,"marker":"phase_begin","name":"eval"}])"));
  EXPECT_THAT(tick, HasSubstr(R"("losses":{"pss_denied":2}})"));
}

TEST(Export, ConvertsAnyRecordingIntoARunFile) {
  const TempTree dir;
  dir.write("log.csv", "t_s,pid,role,rss_mb\n0,5,trainer,1\n1,5,trainer,2\n");

  EXPECT_EQ(run({dir.path("log.csv"), "tidemark", dir.path("run"), false}, kExitOk), "");
  const MemorySink run = read_back(dir.path("run"));

  EXPECT_EQ(run.info.format, "csv");
  ASSERT_EQ(run.ticks.size(), 2U);
  EXPECT_EQ(run.ticks[1].processes.at(0).rss_bytes, 2U << 20U);
}

TEST(Export, WritesNoNameThatASpreadsheetWouldRun) {
  const TempTree dir;
  dir.write("log.csv", "t_s,pid,comm,rss_mb\n0,5,\"=HYPERLINK(\"\"http://x\"\")\",1\n0,6,'@x,1\n");

  run({dir.path("log.csv"), "csv", dir.path("out.csv"), false}, kExitOk);
  const MemorySink run = read_back(dir.path("out.csv"));

  EXPECT_THAT(lines_of(dir.path("out.csv")).at(1), HasSubstr(",\"'=HYPERLINK("));
  EXPECT_THAT(lines_of(dir.path("out.csv")).at(2), HasSubstr(",'@x,"));
  ASSERT_EQ(run.ticks.at(0).new_processes.size(), 2U);
  EXPECT_EQ(run.ticks[0].new_processes[0].comm, "=HYPERLINK(\"http://x\")");
  EXPECT_EQ(run.ticks[0].new_processes[1].comm, "@x");
}

TEST(Export, MasksTheSecretsOfACommandThatAnotherToolLogged) {
  const TempTree dir;
  dir.write("log.dat", "CMDLINE python train.py --token abc123\nMEM 1.0 1700000000.0\n");

  run({dir.path("log.dat"), "tidemark", dir.path("run"), false}, kExitOk);
  const MemorySink run = read_back(dir.path("run"));

  EXPECT_EQ(run.info.command, "python train.py --token ***");
  EXPECT_EQ(run.ticks.at(0).new_processes.at(0).argv, "python train.py --token ***");
  EXPECT_THAT(*read_file(dir.path("run")), testing::Not(HasSubstr("abc123")));
}

TEST(Export, MasksTheSecretsOfACommandInJsonLinesToo) {
  const TempTree dir;
  dir.write("log.dat", "CMDLINE python train.py --token abc123\nMEM 1.0 1700000000.0\n");

  run({dir.path("log.dat"), "jsonl", dir.path("out.jsonl"), false}, kExitOk);
  const std::string text = *read_file(dir.path("out.jsonl"));

  EXPECT_THAT(text, HasSubstr("python train.py --token ***"));
  EXPECT_THAT(text, testing::Not(HasSubstr("abc123")));
}

// Feeds a log to the standard input and, before it ends, opens the run file that is made of it.
class OtherProgram {
 public:
  explicit OtherProgram(const std::string& run_file)
      : saved_(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const Fd read_end(ends[0]);
    ::dup2(read_end.get(), STDIN_FILENO);
    thread_ = std::thread([this, run_file, pipe = Fd(ends[1])] {
      std::string log = "t_s,rss_mb\n";
      for (int t = 0; t < 2'000; ++t) {  // more than the importer waits for to tell the format
        log += std::to_string(t) + ",1\n";
      }
      EXPECT_TRUE(write_all(pipe.get(), log));
      while (!has_opened(run_file)) {
        std::this_thread::yield();
      }
    });
  }
  ~OtherProgram() {
    thread_.join();
    ::dup2(saved_.get(), STDIN_FILENO);
  }
  OtherProgram(const OtherProgram&) = delete;
  OtherProgram& operator=(const OtherProgram&) = delete;

 private:
  bool has_opened(const std::string& run_file) {
    auto database = recording::Database::open(run_file, recording::Database::Mode::kReadOnly);
    if (!database) {
      return false;
    }
    const auto mode = database->query_text("PRAGMA journal_mode");
    if (!mode || *mode != "wal" || !database->query_integer("SELECT count(*) FROM ticks")) {
      return false;
    }
    database_ = std::move(*database);
    return true;
  }

  Fd saved_;
  std::optional<recording::Database> database_;
  std::thread thread_;
};

TEST(Export, SaysWhenTheLogStaysBesideTheRunFile) {
  const TempTree dir;
  const std::string path = dir.path("run");
  const OtherProgram other(path);

  EXPECT_EQ(run({"-", "tidemark", path, false}, kExitOk),
            "tidemark: note: " + path +
                " is in use by another program, so its log stays beside it: move or copy " + path +
                " together with " + path + "-wal\n");
}

TEST(Export, NeverCallsRssAFootprint) {
  const TempTree dir;
  dir.write("log.csv", "t_s,rss_bytes\n0,1000\n60,3000\n");

  run({dir.path("log.csv"), "jsonl", dir.path("out"), false}, kExitOk);
  const auto lines = lines_of(dir.path("out"));

  EXPECT_THAT(lines.at(1), HasSubstr(R"("tree":{"processes":1,"rss_bytes":1000,)"
                                     R"("footprint_bytes":null,)"));
  EXPECT_THAT(lines.at(3),
              HasSubstr(R"("footprint":null,"rss":{"start_bytes":1000,"end_bytes":3000,)"
                        R"("peak_bytes":3000,"peak_s":60,"growth_bytes":2000,)"));
}

TEST(Export, DoesNotTakeStepsForSeconds) {
  const TempTree dir;
  dir.write("log.csv", "step,rss_bytes\n10,1000\n20,3000\n");

  run({dir.path("log.csv"), "csv", dir.path("out.csv"), false}, kExitOk);
  run({dir.path("log.csv"), "jsonl", dir.path("out.jsonl"), false}, kExitOk);
  const auto json = lines_of(dir.path("out.jsonl"));

  EXPECT_TRUE(read_back(dir.path("out.csv")).info.time_is_steps);
  EXPECT_THAT(json.at(1), HasSubstr(R"("t_s":null,"late_s":0,"step":10,)"));
  EXPECT_THAT(json.at(3), HasSubstr(R"("growth_bytes_per_s":null,"growth_bytes_per_step":200)"));
}

TEST(Export, SaysWhichLinesItLeftOutAndWhatItAssumed) {
  const TempTree dir;
  dir.write("log.csv", "t_s,mem\n0,1.5\noops,2\n1,2.5\n");

  EXPECT_EQ(run({dir.path("log.csv"), "csv", dir.path("out"), false}, kExitOk),
            "tidemark: note: 1 of 3 lines could not be used; the first is line 3: its time is not "
            "a number or a date\n"
            "tidemark: note: column 'mem' names no unit: taken as MiB\n");
}

TEST(Export, NeverReplacesAFileUnlessForced) {
  const TempTree dir;
  record(dir.path("run"));
  dir.write("out", "precious");

  for (const char* format : {"csv", "jsonl", "tidemark"}) {
    EXPECT_THAT(run({dir.path("run"), format, dir.path("out"), false}, kExitTarget),
                HasSubstr("File exists; choose another name, or replace it with --force"));
    EXPECT_EQ(*read_file(dir.path("out")), "precious");
  }
  EXPECT_EQ(run({dir.path("run"), "csv", dir.path("out"), true}, kExitOk), "");
  EXPECT_THAT(lines_of(dir.path("out")).at(0), StartsWith("t_s,step,"));
}

TEST(Export, KeepsWhatCameBeforeTheDamage) {
  const TempTree dir;
  record(dir.path("run"));
  {
    auto database =
        recording::Database::open(dir.path("run"), recording::Database::Mode::kReadWrite);
    ASSERT_TRUE(database);
    ASSERT_TRUE(database->execute("UPDATE ticks SET t_s = 0 WHERE tick = 2"));
  }

  const std::string said = run({dir.path("run"), "csv", dir.path("out"), false}, kExitTarget);

  EXPECT_THAT(said, HasSubstr("the export holds what came before the error"));
  EXPECT_EQ(lines_of(dir.path("out")).size(), 1U + 2 + 2 + 1);  // header, processes, roles, tree
}

TEST(Export, RefusesWhatItCannotDo) {
  const TempTree dir;
  record(dir.path("run"));

  EXPECT_EQ(run({dir.path("run"), "xml", "", false}, kExitUsage),
            "tidemark: error: 'xml' is not a format; choose csv, jsonl, tidemark, folded, pprof or "
            "speedscope\n");
  EXPECT_EQ(run({dir.path("run"), "tidemark", "-", false}, kExitUsage),
            "tidemark: error: a run file cannot go to the standard output; name it with -o\n");
  EXPECT_EQ(
      run({dir.path("missing"), "csv", "", false}, kExitTarget),
      "tidemark: error: cannot open " + dir.path("missing") + ": No such file or directory\n");
}

}  // namespace
}  // namespace tidemark::report
