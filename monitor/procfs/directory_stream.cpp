// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/directory_stream.h"

#include <fcntl.h>

#include <cerrno>

#include <fmt/format.h>

#include "common/io.h"

namespace tidemark::monitor {

Result<DirectoryStream> DirectoryStream::open_at(int parent, const std::string& path) {
  auto fd = tidemark::open_at(parent, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!fd) {
    return fd.error();
  }
  DIR* const stream = ::fdopendir(fd->get());
  if (stream == nullptr) {
    return system_error(fmt::format("cannot list {}", path), errno);
  }
  fd->release();  // the stream closes it
  return DirectoryStream(stream);
}

const dirent* DirectoryStream::next() {
  return ::readdir(stream_.get());  // NOLINT(concurrency-mt-unsafe): nobody shares the stream
}

int DirectoryStream::fd() const { return ::dirfd(stream_.get()); }

}  // namespace tidemark::monitor
