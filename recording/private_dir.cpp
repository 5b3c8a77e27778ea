// SPDX-License-Identifier: Apache-2.0
#include "recording/private_dir.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace tidemark::recording {

Result<PrivateDir> PrivateDir::create() {
  const char* const temporary = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe)
  const bool is_set = temporary != nullptr && *temporary != '\0';
  std::string path = fmt::format("{}/tidemark-XXXXXX", is_set ? temporary : "/tmp");
  if (::mkdtemp(path.data()) == nullptr) {
    return system_error(fmt::format("cannot make a temporary directory {}", path), errno);
  }
  return PrivateDir(std::move(path));
}

PrivateDir::PrivateDir(PrivateDir&& other) noexcept : path_(std::exchange(other.path_, {})) {}

PrivateDir::~PrivateDir() {
  if (!path_.empty()) {
    std::error_code ignored;  // a destructor has nobody to tell
    std::filesystem::remove_all(path_, ignored);
  }
}

}  // namespace tidemark::recording
