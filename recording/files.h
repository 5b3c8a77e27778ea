// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>

#include "common/fd.h"
#include "common/result.h"

namespace tidemark::recording {

// Follows symbolic links.
bool file_exists(const std::string& path);

// Copies a regular file, as long as it is now. `to` is created, 0600. `flags`: further ones of
// open(2).
Status copy_file(const std::string& from, const std::string& to, int flags = 0);

// What SQLite would read beside a run file (-wal, -journal, -shm) is a regular file: a link may
// lead to a device that has no end, and a pipe waits for ever.
Status check_companions(const std::string& path);

// The same error with the name of the file in front: "name: what".
Error named(const std::string& name, const Error& error);

// A directory of our own (0700) under TMPDIR or /tmp, removed with its files when destroyed.
class PrivateDir {
 public:
  static Result<PrivateDir> create();
  PrivateDir(PrivateDir&& other) noexcept;
  PrivateDir& operator=(PrivateDir&& other) = delete;
  ~PrivateDir();

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  explicit PrivateDir(std::string path) : path_(std::move(path)) {}

  std::string path_;  // empty: moved from
};

// The process that holds SQLite's lock on the database; nullopt: no other process has it open.
// Do not call it on a file that this process has open through SQLite: closing any descriptor of a
// file drops all of the process's locks on it (fcntl(2)).
std::optional<pid_t> process_that_has_open(const std::string& path);

// The folder of `path`, locked against others that publish a run file in it: until a recording has
// the file open, nothing shows that it is in use. One that stays locked is used all the same.
Fd lock_folder_of(const std::string& path);

// A file that is written under a temporary name in the same directory and then renamed: whenever we
// are killed, the path holds nothing, what was there before, or a complete file. The destructor
// removes a file that was not published.
class PendingFile {
 public:
  // Empty, private (0600 whatever the umask). Fails when `path` exists, unless `replace`; even then
  // only a regular file that no process records to is replaced.
  static Result<PendingFile> create(const std::string& path, bool replace);
  PendingFile(PendingFile&& other) noexcept;
  PendingFile& operator=(PendingFile&& other) = delete;
  ~PendingFile();

  const std::string& temporary_path() const { return temporary_path_; }
  // The final path, with symbolic links resolved.
  const std::string& path() const { return path_; }
  // Renames it to path(). Nothing may have it open. What has come there since create() is replaced
  // under the same conditions.
  Status publish();

 private:
  PendingFile(std::string path, std::string temporary_path, bool replace)
      : path_(std::move(path)), temporary_path_(std::move(temporary_path)), replace_(replace) {}

  std::string path_;
  std::string temporary_path_;  // empty once published
  bool replace_;
};

// Copies a run file with its log (-wal, -journal) into a new private directory, as "run". When a
// recorder starts a new log during the copy, the copy is repeated; an Error after a few attempts.
Result<PrivateDir> copy_run(const std::string& path);

}  // namespace tidemark::recording
