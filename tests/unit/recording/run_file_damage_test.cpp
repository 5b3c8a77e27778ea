// SPDX-License-Identifier: Apache-2.0
// What the reader says about files that are not what they should be.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "common/io.h"
#include "recording/open.h"
#include "recording/run_reader.h"
#include "recording/run_writer.h"
#include "recording/schema.h"
#include "tests/support/sample_run.h"
#include "tests/unit/recording/import/import_text.h"

namespace tidemark::recording {
namespace {

using testing::HasSubstr;
using tests::TempTree;

class DamagedRunFile : public testing::Test {
 protected:
  DamagedRunFile() {
    auto writer = RunWriter::create(path_);
    EXPECT_TRUE(writer);
    EXPECT_TRUE((*writer)->begin(tests::full_run_info()));
    for (std::uint64_t n = 0; n < kTicks; ++n) {
      EXPECT_TRUE((*writer)->add(tests::plain_tick(n)));
    }
    EXPECT_TRUE((*writer)->end(static_cast<double>(kTicks)));
    content_ = *read_file(path_);
  }

  void write_back() { dir_.write("run.tidemark", content_); }
  void set_header_field(std::size_t offset, unsigned value) {
    for (std::size_t i = 0; i < 4; ++i) {
      content_[offset + i] = static_cast<char>(value >> (24 - 8 * i) & 0xFFU);
    }
    write_back();
  }
  void execute(const std::string& sql) {
    auto database = Database::open(path_, Database::Mode::kReadWrite);
    ASSERT_TRUE(database);
    const Status status = database->execute(sql);
    ASSERT_TRUE(status) << status.error().what;
  }

  // Takes away what the next version has added: call it for one version after the other.
  void make_it_of_version(std::int32_t version) {
    std::string sql =
        "DROP VIEW IF EXISTS site_memory; DROP VIEW IF EXISTS site_stacks;"
        "DROP VIEW IF EXISTS owner_memory; DROP VIEW IF EXISTS ledger_memory;";
    for (const Table& table : tables()) {
      const std::string name(table.name);
      if (table.since_version > version) {
        sql += "DROP TABLE IF EXISTS " + name + ";";
        continue;
      }
      for (const Column& column : table.columns) {
        if (column.since_version == version + 1) {
          sql += "ALTER TABLE " + name + " DROP COLUMN " + column.name + ";";
        }
      }
    }
    execute(sql + "PRAGMA user_version=" + std::to_string(version));
  }

  static constexpr std::uint64_t kTicks = 1'000;
  TempTree dir_;
  std::string path_ = dir_.path("run.tidemark");
  std::string content_;
};

TEST_F(DamagedRunFile, OfANewerVersionSaysToUpdate) {
  set_header_field(60, static_cast<unsigned>(kSchemaVersion) + 1);

  const Imported imported = import_file(path_);

  EXPECT_EQ(imported.code, Errc::kUnsupported);
  EXPECT_EQ(imported.error, path_ + " was written by a newer tidemark; this version reads schema " +
                                std::to_string(kSchemaVersion) + ". Update tidemark to read it");
}

TEST_F(DamagedRunFile, OfAnOlderVersionSaysWhatToDo) {
  set_header_field(60, 0);

  const Imported imported = import_file(path_);

  EXPECT_EQ(imported.code, Errc::kUnsupported);
  EXPECT_THAT(imported.error, HasSubstr(path_ + " was written by an older tidemark"));
}

TEST_F(DamagedRunFile, OfTheSecondVersionKeepsItsGpus) {
  execute("INSERT INTO gpus VALUES(0, 'A100'); INSERT INTO gpu_samples VALUES(1, 0, 11, 12)");
  for (std::int32_t version = kSchemaVersion - 1; version >= 2; --version) {
    make_it_of_version(version);
  }

  const Imported imported = import_file(path_);

  EXPECT_EQ(imported.error, "");
  ASSERT_EQ(imported.run.ticks.size(), kTicks);
  const std::vector<GpuSample>& gpus = imported.run.ticks.front().gpus;
  ASSERT_EQ(gpus.size(), 1U);
  EXPECT_EQ(gpus[0].used_bytes, 11U);
  EXPECT_EQ(gpus[0].busy_percent, std::nullopt);
  EXPECT_EQ(gpus[0].age_s, 0.0);
  EXPECT_FALSE(gpus[0].is_lost);
}

TEST_F(DamagedRunFile, WithAStateOfNoGpuIsRefused) {
  execute("INSERT INTO gpu_states VALUES(1, 77, NULL, NULL, 0.0, 0)");

  EXPECT_THAT(import_file(path_).error, HasSubstr("the state of a GPU belongs to no GPU"));
}

// What an earlier version did not have, this one does not miss.
TEST_F(DamagedRunFile, OfAnEarlierVersionIsReadAsItWas) {
  for (std::int32_t version = kSchemaVersion - 1; version >= kOldestSchemaVersion; --version) {
    make_it_of_version(version);

    const Imported imported = import_file(path_);

    EXPECT_EQ(imported.error, "") << version;
    EXPECT_EQ(imported.run.ticks.size(), kTicks) << version;
  }
}

TEST_F(DamagedRunFile, OfThisVersionWithoutTheTablesOfSitesIsRefused) {
  execute("DROP TABLE sites");

  const Imported imported = import_file(path_);

  EXPECT_THAT(imported.error, HasSubstr("its table 'sites' is missing or was altered"));
}

TEST_F(DamagedRunFile, WithAStackOfNoSiteIsRead) {
  execute(
      "INSERT INTO site_frames VALUES(77, 0, 5); INSERT INTO sites VALUES(3, 1, 999, 'heap',0);"
      "INSERT INTO site_samples VALUES(1, 4711, 1, 1, 1, 1, 1, 1, NULL)");

  const Imported imported = import_file(path_);

  EXPECT_EQ(imported.error, "");
  ASSERT_EQ(imported.run.ticks.size(), kTicks);
  EXPECT_TRUE(imported.run.ticks[0].allocations.sites.empty());
}

TEST_F(DamagedRunFile, ThatIsAnotherDatabaseIsNotTouched) {
  set_header_field(68, 12345);

  EXPECT_EQ(import_file(path_).error,
            path_ + " is an SQLite database, but not a tidemark run file");
}

TEST_F(DamagedRunFile, ThatLostItsEndSaysHowMuch) {
  ASSERT_EQ(::truncate(path_.c_str(), 20'000), 0);

  EXPECT_EQ(import_file(path_).error, path_ + " is truncated: it has 20000 of " +
                                          std::to_string(content_.size()) +
                                          " bytes; copy it again from where it was recorded");
}

TEST_F(DamagedRunFile, ThatIsOnlyAPieceOfAHeaderIsRefused) {
  ASSERT_EQ(::truncate(path_.c_str(), 50), 0);

  EXPECT_EQ(import_file(path_).code, Errc::kMalformed);
}

TEST_F(DamagedRunFile, IsDeliveredUpToTheDamage) {
  // The samples fill the file; a page of zeros in its last third is no page of theirs.
  const std::size_t page = content_.size() * 2 / 3 / 4096 * 4096;
  content_.replace(page, 4096, std::string(4096, '\0'));
  write_back();

  const Imported imported = import_file(path_);

  EXPECT_EQ(imported.code, Errc::kMalformed);
  EXPECT_THAT(imported.error, HasSubstr(path_));
  EXPECT_THAT(imported.error,
              HasSubstr(std::to_string(imported.run.ticks.size()) + " ticks before the damage"));
  EXPECT_GT(imported.run.ticks.size(), 20U);
  EXPECT_LT(imported.run.ticks.size(), kTicks);
  EXPECT_EQ(imported.run.calls.back(), 't');  // no end() after an error
}

TEST_F(DamagedRunFile, WithAViewInPlaceOfATableIsRefused) {
  execute(
      "DROP TABLE losses; CREATE VIEW losses AS SELECT 1 AS loss, 1 AS tick, 1 AS t_s, "
      "'x' AS what, 1 AS count");

  EXPECT_EQ(import_file(path_).error,
            path_ +
                ": its table 'losses' is missing or was altered; this is not a run file as "
                "tidemark writes it");
}

TEST_F(DamagedRunFile, WithAVirtualTableInPlaceOfATableIsRefused) {
  execute("DROP TABLE losses; CREATE VIRTUAL TABLE losses USING rtree(loss, tick, t_s)");

  EXPECT_THAT(import_file(path_).error, HasSubstr("its table 'losses' is missing or was altered"));
}

TEST_F(DamagedRunFile, WithAColumnOfAnotherKindIsRefused) {
  for (const char* columns :
       {"loss INTEGER PRIMARY KEY, tick TEXT NOT NULL, t_s REAL NOT NULL, what TEXT NOT NULL,"
        " count INTEGER NOT NULL",
        "loss INTEGER PRIMARY KEY, tick INTEGER, t_s REAL NOT NULL, what TEXT NOT NULL,"
        " count INTEGER NOT NULL",
        "loss INTEGER, tick INTEGER NOT NULL, t_s REAL NOT NULL, what TEXT NOT NULL,"
        " count INTEGER NOT NULL",
        "loss INTEGER PRIMARY KEY, tick INTEGER NOT NULL, t_s REAL NOT NULL, count INTEGER NOT "
        "NULL,"
        " what TEXT NOT NULL",
        "loss INTEGER PRIMARY KEY, tick INTEGER NOT NULL, t_s REAL NOT NULL, what TEXT NOT NULL"}) {
    execute(std::string("DROP TABLE losses; CREATE TABLE losses(") + columns + ")");

    EXPECT_THAT(import_file(path_).error, HasSubstr("its table 'losses' is missing or was altered"))
        << columns;
  }
}

// Columns count, not how somebody's tool has written the statement down.
TEST_F(DamagedRunFile, WhoseTablesAnotherToolHasMadeAgainIsRead) {
  execute(
      "DROP TABLE losses; CREATE TABLE \"losses\" ( -- mine\n loss INTEGER PRIMARY KEY,\n"
      " tick INTEGER NOT NULL, t_s REAL NOT NULL, \"what\" TEXT NOT NULL, count INTEGER NOT NULL);"
      "INSERT INTO losses VALUES(1, 1, 0.0, 'pss_denied', 2)");

  const Imported imported = import_file(path_);

  EXPECT_EQ(imported.error, "");
  ASSERT_EQ(imported.run.ticks.size(), kTicks);
  ASSERT_EQ(imported.run.ticks[0].losses.size(), 1U);
  EXPECT_EQ(imported.run.ticks[0].losses[0].count, 2U);
}

TEST_F(DamagedRunFile, WithAnAlteredTableIsRefused) {
  execute("ALTER TABLE ticks ADD COLUMN mine INTEGER");

  EXPECT_THAT(import_file(path_).error, HasSubstr("its table 'ticks' is missing or was altered"));
}

TEST_F(DamagedRunFile, WithTablesOfTheUserIsStillARunFile) {
  execute("CREATE TABLE notes(text); CREATE INDEX mine ON markers(name)");

  EXPECT_EQ(import_file(path_).error, "");
}

TEST_F(DamagedRunFile, WithoutMetadataIsRefused) {
  execute("DELETE FROM run");

  EXPECT_EQ(import_file(path_).error, path_ + " is damaged: it does not say what was recorded");
}

TEST_F(DamagedRunFile, WithValuesOfTheWrongTypeIsDamaged) {
  execute("UPDATE process_samples SET rss_bytes = 'much' WHERE tick = 5");

  const Imported imported = import_file(path_);

  EXPECT_THAT(imported.error, HasSubstr("is damaged: a column holds a value of the wrong type"));
  EXPECT_EQ(imported.run.ticks.size(), 4U);
}

TEST_F(DamagedRunFile, WithNegativeSizesIsDamaged) {
  execute("UPDATE process_samples SET rss_bytes = -1 WHERE tick = 5");

  EXPECT_THAT(import_file(path_).error, HasSubstr("wrong type"));
}

TEST_F(DamagedRunFile, WithSamplesOfNoProcessIsDamaged) {
  execute("DELETE FROM processes");

  EXPECT_THAT(import_file(path_).error, HasSubstr("belongs to no process"));
}

TEST_F(DamagedRunFile, WhoseTimeRunsBackwardsIsDamaged) {
  execute("UPDATE ticks SET t_s = 0 WHERE tick = 100");

  EXPECT_THAT(import_file(path_).error, HasSubstr("not in the order of time"));
}

TEST_F(DamagedRunFile, WithNamesOfAFutureVersionIsReadAndNoted) {
  execute(
      "UPDATE processes SET role = 'astronaut'; INSERT INTO events VALUES(NULL, 1, 0, "
      "'landing', 0, 0, '', 1)");

  const Imported imported = import_file(path_);

  EXPECT_EQ(imported.error, "");
  EXPECT_EQ(imported.run.ticks.at(0).new_processes.at(0).role, Role::kOther);
  EXPECT_TRUE(imported.run.ticks[0].events.empty());
  EXPECT_THAT(imported.summary.notes,
              testing::ElementsAre("'astronaut' is not known to this version of tidemark",
                                   "'landing' is not known to this version of tidemark"));
}

TEST_F(DamagedRunFile, IsFoundThroughASymbolicLink) {
  dir_.link("link", path_);

  EXPECT_EQ(import_file(dir_.path("link")).summary.ticks, kTicks);
}

TEST(OpenRecording, NamesEachKindOfFileThatIsNoRecording) {
  const TempTree dir;
  dir.write("empty", "");
  dir.write("gz", "\x1F\x8B\x08 rest");
  dir.write("utf16", "\xFF\xFEt\x01");
  dir.write("binary", std::string("\x7F"
                                  "ELF\0\0\0",
                                  7));
  dir.write("prose", "Dear diary, today the memory grew.\n");
  ASSERT_EQ(::mkfifo(dir.path("fifo").c_str(), 0600), 0);

  EXPECT_EQ(import_file(dir.path("missing")).error,
            "cannot open " + dir.path("missing") + ": No such file or directory");
  EXPECT_EQ(import_file(dir.path()).error, dir.path() + " is a directory, not a recording");
  EXPECT_EQ(import_file(dir.path("empty")).error, dir.path("empty") + " is empty");
  EXPECT_THAT(import_file(dir.path("fifo")).error, HasSubstr("is not a regular file; pipe it in"));
  EXPECT_THAT(import_file(dir.path("gz")).error, HasSubstr("is compressed"));
  EXPECT_THAT(import_file(dir.path("utf16")).error, HasSubstr("is UTF-16 text"));
  EXPECT_THAT(import_file(dir.path("binary")).error, HasSubstr("is not a recording"));
  EXPECT_THAT(import_file(dir.path("prose")).error, HasSubstr("found no column for the time"));
}

TEST(OpenRecording, TakesASelectorForJsonOnly) {
  const TempTree dir;
  dir.write("a.csv", "t_s,rss_mb\n0,1\n");
  dir.write("b#1.csv", "t_s,rss_mb\n0,1\n");

  EXPECT_THAT(import_file(dir.path("a.csv#x")).error, HasSubstr("holds one recording"));
  EXPECT_EQ(import_file(dir.path("b#1.csv")).error, "");
}

// Replaces the standard input by a pipe for the life of one of these.
class StandardInput {
 public:
  explicit StandardInput(std::string content) : saved_(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const Fd read_end(ends[0]);
    ::dup2(read_end.get(), STDIN_FILENO);
    feeder_ = std::thread([write_end = Fd(ends[1]), content = std::move(content)] {
      EXPECT_TRUE(write_all(write_end.get(), content));
    });
  }
  ~StandardInput() {
    feeder_.join();
    ::dup2(saved_.get(), STDIN_FILENO);
  }
  StandardInput(const StandardInput&) = delete;
  StandardInput& operator=(const StandardInput&) = delete;

 private:
  Fd saved_;
  std::thread feeder_;
};

// The standard input as `< path`, or closed, for the life of one of these.
class RedirectedInput {
 public:
  explicit RedirectedInput(const std::optional<std::string>& path)
      : saved_(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)) {
    ::close(STDIN_FILENO);
    if (path) {
      EXPECT_EQ(::open(path->c_str(), O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    }
  }
  ~RedirectedInput() { ::dup2(saved_.get(), STDIN_FILENO); }
  RedirectedInput(const RedirectedInput&) = delete;
  RedirectedInput& operator=(const RedirectedInput&) = delete;

 private:
  Fd saved_;
};

TEST(OpenRecording, SaysWhyTheStandardInputCannotBeRead) {
  const TempTree dir;
  {
    const RedirectedInput input(dir.path());
    EXPECT_EQ(import_file("-").error, "standard input: cannot read: Is a directory");
  }
  const RedirectedInput closed(std::nullopt);
  EXPECT_EQ(import_file("-").error, "cannot read the standard input: Bad file descriptor");
}

TEST(OpenRecording, ReadsTextFromTheStandardInput) {
  const StandardInput input("t_s,rss_mb\n0,1\n1,2\n");

  const Imported imported = import_file("-");

  EXPECT_EQ(imported.error, "");
  EXPECT_EQ(imported.summary.ticks, 2U);
}

TEST(OpenRecording, ReadsARunFileFromTheStandardInput) {
  const TempTree dir;
  auto writer = RunWriter::create(dir.path("run"));
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->begin(tests::full_run_info()));
  ASSERT_TRUE((*writer)->add(tests::plain_tick(0)));
  ASSERT_TRUE((*writer)->end(0.0));
  const StandardInput input(*read_file(dir.path("run")));

  const Imported imported = import_file("-");

  EXPECT_EQ(imported.error, "");
  EXPECT_EQ(imported.summary.ticks, 1U);
}

TEST(Sqlite, RefusesALibraryThatIsTooOld) {
  EXPECT_TRUE(check_sqlite_version(3022000));
  const Status status = check_sqlite_version(3007017);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::kUnsupported);
  EXPECT_EQ(status.error().what,
            "the SQLite library that was loaded is version 3.7.17; run files need 3.22.0 or newer");
}

}  // namespace
}  // namespace tidemark::recording
