// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dirent.h>

#include <memory>
#include <string>

#include "common/result.h"

namespace tidemark::monitor {

// An open directory that is being listed. Owns its descriptor. Not thread-safe.
class DirectoryStream {
 public:
  // Does not follow a symbolic link at the end of `path`.
  static Result<DirectoryStream> open_at(int parent, const std::string& path);

  // nullptr at the end. Valid until the next call.
  const dirent* next();
  int fd() const;

 private:
  struct Close {
    void operator()(DIR* stream) const { ::closedir(stream); }
  };
  explicit DirectoryStream(DIR* stream) : stream_(stream) {}

  std::unique_ptr<DIR, Close> stream_;
};

}  // namespace tidemark::monitor
