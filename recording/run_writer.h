// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/recording_sink.h"
#include "recording/files.h"
#include "recording/sqlite.h"
#include "recording/tick_writer.h"

namespace tidemark::recording {

struct RunWriterOptions {
  bool replace = false;          // --force: an existing regular file is replaced
  int busy_timeout_ms = 30'000;  // how long another program (sqlite3, a notebook) may lock the file
};

// Writes one run file. Every tick is one transaction in the write-ahead log: whenever the process
// is killed, the file holds all ticks whose add() has returned, each complete. There is no fsync
// per tick (synchronous=NORMAL): what a killed process wrote is in the kernel's cache and survives;
// a power cut may cost the last seconds, never the file.
//
// After an error nothing more is written and every call returns that same error; what was
// committed stays readable. Not thread-safe, may block on the disk: see Recorder.
class RunWriter final : public RecordingSink {
 public:
  // Fails early when `path` cannot be written; the file appears there with begin().
  static Result<std::unique_ptr<RunWriter>> create(const std::string& path,
                                                   RunWriterOptions options = {});
  ~RunWriter() override;

  Status begin(const RunInfo& info) override;
  Status add(const Tick& tick) override;
  Status process_ended(const ProcessRecord& process) override;
  // Closes the run as one file, without a log beside it. While another program has the file open
  // that is not possible: the log then stays beside it, and is_one_file() says so. Only what that
  // program is reading at this moment keeps the end of the run in the log.
  Status end(double t_s) override;

  // How long the last tick took from the sampler into the file; stored with the next one.
  void set_write_late_s(double seconds) { write_late_s_ = seconds; }
  // After end(). False: FILE-wal belongs to the run as well, move or copy both.
  bool is_one_file() const { return is_one_file_; }
  const std::string& path() const { return path_; }

 private:
  RunWriter(PendingFile pending, Database database, RunWriterOptions options)
      : path_(pending.path()),
        options_(options),
        pending_(std::move(pending)),
        database_(std::move(database)) {}

  Status publish(const RunInfo& info);
  Status open_published();
  template <typename Work>
  Status in_transaction(Work work);
  Status write_tick(const Tick& tick);
  Status write_ends(std::span<const ProcessRecord> ended);
  Status write_run_end(double t_s);
  Status check_still_there() const;
  Status fail(const Error& error);

  std::string path_;
  RunWriterOptions options_;
  std::optional<PendingFile> pending_;
  std::optional<Database> database_;
  std::optional<TickWriter> ticks_;
  std::vector<ProcessRecord> ended_;  // since the last transaction
  std::optional<double> write_late_s_;
  std::optional<Error> failure_;
  struct stat identity_ {};  // of the published file
  double last_t_s_ = 0.0;
  std::uint64_t committed_ticks_ = 0;
  bool is_one_file_ = false;
};

}  // namespace tidemark::recording
