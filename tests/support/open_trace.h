// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>

#include "common/check.h"
#include "common/fd.h"
#include "profiler/reader/trace_file.h"

namespace tidemark::tests {

// A file in memory with these bytes.
inline Fd memory_file(std::string_view bytes) {
  Fd file(::memfd_create("trace", MFD_CLOEXEC));
  TIDEMARK_CHECK(
      ::ftruncate(file.get(), static_cast<off_t>(bytes.size())) == 0 &&
          ::pwrite(file.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
      "cannot make a file in memory");
  return file;
}

inline Result<reader::TraceFile> open_trace(std::string_view bytes) {
  return reader::TraceFile::adopt(memory_file(bytes));
}

// Puts other bytes into a file as its writer would: without a moment at which it is shorter.
inline void rewrite(const Fd& file, std::string_view bytes) {
  TIDEMARK_CHECK(
      ::pwrite(file.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
      "cannot rewrite the file");
}

}  // namespace tidemark::tests
