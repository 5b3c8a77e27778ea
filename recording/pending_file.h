// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "common/result.h"

namespace tidemark::recording {

// The process that has the database open, as SQLite's own lock tells; nullopt: no other process.
// Do not call it on a file that this process has open through SQLite: closing any descriptor of a
// file drops all of the process's locks on it (fcntl(2)).
std::optional<pid_t> process_that_has_open(const std::string& path);

// A file under construction beside the place where it will stand: the path holds either nothing
// (or what was there before) or a complete file, whenever we are killed. Removes what was not
// published.
class PendingFile {
 public:
  // Empty, private (0600 whatever the umask). Fails when `path` exists, unless `replace`; even then
  // only a regular file that nobody records to is replaced.
  static Result<PendingFile> create(const std::string& path, bool replace);
  PendingFile(PendingFile&& other) noexcept;
  PendingFile& operator=(PendingFile&& other) = delete;
  ~PendingFile();

  const std::string& temporary_path() const { return temporary_path_; }
  // Where the file will stand: `path` with symbolic links resolved.
  const std::string& path() const { return path_; }
  // Moves it into place. Nothing may have it open.
  Status publish();

 private:
  PendingFile(std::string path, std::string temporary_path, bool replace)
      : path_(std::move(path)), temporary_path_(std::move(temporary_path)), replace_(replace) {}

  std::string path_;
  std::string temporary_path_;  // empty once published
  bool replace_;
};

}  // namespace tidemark::recording
