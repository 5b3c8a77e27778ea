// SPDX-License-Identifier: Apache-2.0
#include "common/file_size_signal.h"

#include <ctime>

namespace tidemark {
namespace {

sigset_t file_size_signal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGXFSZ);
  return set;
}

}  // namespace

FileSizeSignalBlock::FileSizeSignalBlock() {
  const sigset_t set = file_size_signal();
  pthread_sigmask(SIG_BLOCK, &set, &previous_);
}

FileSizeSignalBlock::~FileSizeSignalBlock() {
  if (sigismember(&previous_, SIGXFSZ) == 1) {
    return;  // the caller had it blocked already: what is pending is the caller's
  }
  const sigset_t set = file_size_signal();
  const timespec no_wait{};
  sigtimedwait(&set, nullptr, &no_wait);  // takes one that is pending; fails when there is none
  pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
}

}  // namespace tidemark
