// SPDX-License-Identifier: Apache-2.0
#include "live/command_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include <fmt/format.h>

#include "common/io.h"

namespace tidemark::live {

Result<std::string> make_command_output(const std::string& run_file) {
  constexpr int kAttempts = 1000;
  std::string stem = run_file;
  if (stem.empty()) {
    // Nothing of ours changes the environment. NOLINTNEXTLINE(concurrency-mt-unsafe)
    const char* folder = std::getenv("TMPDIR");
    stem = fmt::format("{}/tidemark-output-{}",
                       folder == nullptr || *folder == '\0' ? "/tmp" : folder, ::getpid());
  }
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string path = attempt == 0 ? stem + ".log" : fmt::format("{}.{}.log", stem, attempt);
    const auto file = open_file(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (file) {
      return path;
    }
    if (file.error().sys_errno != EEXIST) {
      return file.error();
    }
  }
  return Error{Errc::kUsage, "there are too many files like " + stem + ".log"};
}

}  // namespace tidemark::live
