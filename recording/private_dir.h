// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/result.h"

namespace tidemark::recording {

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

}  // namespace tidemark::recording
