// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "recording/files.h"
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
  // For a stream: `directory` holds the spooled file and exists as long as the reader.
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

// Memory of the tree over a short interval of a run: footprint, or rss when that is unknown.
struct WindowPoint {
  double t_s = 0.0;
  double min_bytes = 0.0;
  double max_bytes = 0.0;
};

// The memory of the tree between two times, merged to at most `most` intervals. May be called on a
// file that this process is recording: only SQLite opens it, because closing another descriptor of
// it would drop the recorder's locks (fcntl(2)). The time that it takes depends on the samples in
// the window, not on the length of the run.
Result<std::vector<WindowPoint>> read_tree_window(const std::string& path, double from_s,
                                                  double to_s, std::size_t most);

}  // namespace tidemark::recording
