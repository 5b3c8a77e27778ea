// SPDX-License-Identifier: Apache-2.0
#include "recording/run_copy.h"

#include <fcntl.h>

#include <array>

#include <fmt/format.h>

#include "common/io.h"
#include "recording/files.h"

namespace tidemark::recording {
namespace {

constexpr int kAttempts = 3;

// The header of the write-ahead log; its salts change whenever the log starts anew, and only then
// can the file have got pages that a log copied later does not hold. Empty: there is no log.
// https://www.sqlite.org/walformat.html
std::string log_header(const std::string& path) {
  constexpr std::size_t kHeaderBytes = 32;
  const auto fd = open_file(path + "-wal", O_RDONLY);
  if (!fd) {
    return {};
  }
  std::array<char, kHeaderBytes> header{};
  const auto n = pread_full(fd->get(), header);
  return n ? std::string(header.data(), *n) : std::string();
}

// The file first: what is moved into it from the log meanwhile is also in the log.
Status copy_parts(const std::string& path, const std::string& copy) {
  for (const std::string suffix : {"", "-wal", "-journal"}) {
    if (!suffix.empty() && !file_exists(path + suffix)) {
      continue;
    }
    TIDEMARK_TRY(copy_file(path + suffix, copy + suffix));
  }
  return ok();
}

}  // namespace

Result<PrivateDir> copy_run(const std::string& path) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    TIDEMARK_TRY_ASSIGN(auto directory, PrivateDir::create());
    const std::string before = log_header(path);
    const Status status = copy_parts(path, directory.file("run"));
    if (log_header(path) != before) {
      continue;
    }
    if (!status) {
      return status.error();
    }
    return directory;
  }
  return Error{Errc::kIo, fmt::format("{} changes while it is being copied; read it when its "
                                      "recording has ended",
                                      path)};
}

}  // namespace tidemark::recording
