// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "recording/private_dir.h"
#include "recording/reader.h"
#include "recording/sqlite.h"

namespace tidemark::recording {

// Reads a run file, also one that is still being recorded or whose recorder was killed. It sees
// one state of the file throughout and never changes it. (SQLite may leave its index of the log,
// FILE-shm, beside a file whose recorder was killed.)
class RunReader final : public RecordingReader {
 public:
  // `shown_as` is the name that errors give the file, when that is not `path`.
  static Result<std::unique_ptr<RecordingReader>> open(const std::string& path,
                                                       const std::string& shown_as = {});
  // For a stream: `directory` holds the spooled file and lives as long as the reader.
  static Result<std::unique_ptr<RecordingReader>> open_spooled(PrivateDir directory,
                                                               const std::string& file,
                                                               const std::string& shown_as);

  const RunInfo& info() const override { return info_; }
  Result<ReadSummary> read(RecordingSink& sink) override;

 private:
  RunReader(std::optional<PrivateDir> directory, Database database)
      : directory_(std::move(directory)), database_(std::move(database)) {}
  static Result<std::unique_ptr<RunReader>> open_database(std::optional<PrivateDir> directory,
                                                          const std::string& path,
                                                          const std::string& shown_as,
                                                          Database::Mode mode);
  // `why` is what happened when the file was opened in place.
  static Result<std::unique_ptr<RunReader>> open_copy(const std::string& path,
                                                      const std::string& shown_as,
                                                      const Error& why);
  Status load_info();

  std::optional<PrivateDir> directory_;  // destroyed after the database
  Database database_;
  RunInfo info_;
  std::optional<double> end_s_;
  std::int32_t schema_version_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace tidemark::recording
