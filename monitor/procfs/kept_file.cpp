// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/kept_file.h"

#include <fcntl.h>

#include <utility>

#include "common/io.h"

namespace tidemark::monitor {

KeptFile::KeptFile(std::string path) : path_(std::move(path)) {}

std::optional<std::string_view> KeptFile::read(std::span<char> buffer) {
  if (path_.empty()) {
    return std::nullopt;
  }
  if (!fd_) {
    auto opened = open_file(path_, O_RDONLY);
    if (!opened) {
      return std::nullopt;
    }
    fd_ = std::move(*opened);
  }
  const auto size = pread_full(fd_.get(), buffer);
  if (!size) {
    fd_.reset();
    return std::nullopt;
  }
  return std::string_view(buffer.data(), *size);
}

}  // namespace tidemark::monitor
