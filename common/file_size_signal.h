// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

namespace tidemark {

// A write beyond the file-size limit (ulimit -f) raises SIGXFSZ, whose default action kills the
// process. While one of these lives, the calling thread gets EFBIG instead, like any other full
// disk. The signal is directed at the writing thread, so that blocking it there is enough and the
// disposition of the process, which children inherit, stays as it is.
class FileSizeSignalBlock {
 public:
  FileSizeSignalBlock();
  ~FileSizeSignalBlock();
  FileSizeSignalBlock(const FileSizeSignalBlock&) = delete;
  FileSizeSignalBlock& operator=(const FileSizeSignalBlock&) = delete;

 private:
  sigset_t previous_{};
};

}  // namespace tidemark
