// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "common/result.h"

namespace tidemark::demo {

// Where the demo's files go: a folder that stays, or a private one that is removed at the end.
class DemoFolder {
 public:
  // `keep` is made when it is not there; empty: one that is removed.
  static Result<DemoFolder> make(const std::string& keep);
  ~DemoFolder();
  DemoFolder(DemoFolder&& other) noexcept
      : path_(std::move(other.path_)), is_kept_(std::exchange(other.is_kept_, true)) {}
  DemoFolder& operator=(DemoFolder&&) = delete;

  const std::string& path() const { return path_; }

 private:
  DemoFolder(std::string path, bool is_kept) : path_(std::move(path)), is_kept_(is_kept) {}

  std::string path_;
  bool is_kept_;
};

}  // namespace tidemark::demo
