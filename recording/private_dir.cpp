// SPDX-License-Identifier: Apache-2.0
#include "recording/private_dir.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/io.h"

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

Status copy_file(const std::string& from, const std::string& to) {
  const auto in = open_file(from, O_RDONLY);
  if (!in) {
    return in.error();
  }
  const auto out = open_file(to, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (!out) {
    return out.error();
  }
  std::vector<char> buffer(256U << 10U);
  while (true) {
    const auto n = read_some(in->get(), buffer);
    if (!n) {
      return Error{n.error().code, fmt::format("{}: {}", from, n.error().what),
                   n.error().sys_errno};
    }
    if (*n == 0) {
      return ok();
    }
    if (const Status status = write_all(out->get(), {buffer.data(), *n}); !status) {
      return Error{status.error().code, fmt::format("{}: {}", to, status.error().what),
                   status.error().sys_errno};
    }
  }
}

}  // namespace tidemark::recording
