// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/jobs/line_pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "common/io.h"

namespace tidemark::harness {
namespace {

constexpr std::size_t kMaxLineBytes = 64U << 10U;

}  // namespace

Result<LinePipe> LinePipe::open() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return system_error("cannot make a pipe for a job", errno);
  }
  LinePipe pipe;
  pipe.read_end_.reset(ends[0]);
  pipe.write_end_.reset(ends[1]);
  if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
    return system_error("cannot read a pipe without waiting", errno);
  }
  return pipe;
}

bool LinePipe::read_lines(const std::function<void(std::string_view)>& take_line) {
  std::array<char, 4096> piece;
  while (read_end_) {
    const auto size = read_some(read_end_.get(), piece);
    if (!size && size.error().sys_errno == EAGAIN) {
      return true;
    }
    if (!size || *size == 0) {
      read_end_.reset();
      if (!unfinished_.empty()) {
        take_line(unfinished_);
      }
      unfinished_.clear();
      return false;
    }
    unfinished_.append(piece.data(), *size);
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = unfinished_.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      take_line(std::string_view(unfinished_).substr(begin, end - begin));
    }
    unfinished_.erase(0, begin);
    if (unfinished_.size() > kMaxLineBytes) {
      take_line(unfinished_);
      unfinished_.clear();
    }
  }
  return false;
}

}  // namespace tidemark::harness
