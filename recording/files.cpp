// SPDX-License-Identifier: Apache-2.0
#include "recording/files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <vector>

#include <fmt/format.h>

#include "common/io.h"

namespace tidemark::recording {

bool file_exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0;
}

Status copy_file(const std::string& from, const std::string& to) {
  TIDEMARK_TRY_ASSIGN(const auto in, open_file(from, O_RDONLY));
  TIDEMARK_TRY_ASSIGN(const auto out, open_file(to, O_WRONLY | O_CREAT | O_EXCL, 0600));
  std::vector<char> buffer(256U << 10U);
  while (true) {
    const auto n = read_some(in.get(), buffer);
    if (!n) {
      return named(from, n.error());
    }
    if (*n == 0) {
      return ok();
    }
    if (const Status status = write_all(out.get(), {buffer.data(), *n}); !status) {
      return named(to, status.error());
    }
  }
}

Error named(const std::string& name, const Error& error) {
  return Error{error.code, fmt::format("{}: {}", name, error.what), error.sys_errno};
}

}  // namespace tidemark::recording
