// SPDX-License-Identifier: Apache-2.0
#include "live/launch/output_channel.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>

namespace tidemark::live {
namespace {

Result<OutputChannel> open_pipe(int sink) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return system_error("cannot make a pipe for the command's output", errno);
  }
  return OutputChannel{Fd(ends[0]), Fd(ends[1]), sink, false};
}

Result<OutputChannel> open_terminal(int sink) {
  constexpr const char* kFailed = "cannot make a pseudo-terminal for the command's output";
  Fd ours(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!ours || ::grantpt(ours.get()) != 0 || ::unlockpt(ours.get()) != 0) {
    return system_error(kFailed, errno);
  }
  // Not by name: /dev/pts may be another one here than where the terminal was made.
  Fd theirs(::ioctl(ours.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  termios mode{};
  if (!theirs || ::tcgetattr(theirs.get(), &mode) != 0) {
    return system_error(kFailed, errno);
  }
  // Bytes pass unchanged; the real terminal does its own \n -> \r\n.
  ::cfmakeraw(&mode);
  if (::tcsetattr(theirs.get(), TCSANOW, &mode) != 0) {
    return system_error(kFailed, errno);
  }
  OutputChannel channel{std::move(ours), std::move(theirs), sink, true};
  channel.copy_window_size();
  return channel;
}

}  // namespace

Result<OutputChannel> OutputChannel::open(int sink) {
  return ::isatty(sink) == 1 ? open_terminal(sink) : open_pipe(sink);
}

void OutputChannel::copy_window_size() const {
  winsize size{};
  if (is_terminal && ::ioctl(sink, TIOCGWINSZ, &size) == 0) {
    ::ioctl(ours.get(), TIOCSWINSZ, &size);
  }
}

bool same_destination(int sink, int other_sink) {
  struct stat one {};
  struct stat other {};
  return sink == other_sink || (::fstat(sink, &one) == 0 && ::fstat(other_sink, &other) == 0 &&
                                one.st_dev == other.st_dev && one.st_ino == other.st_ino);
}

}  // namespace tidemark::live
