// SPDX-License-Identifier: Apache-2.0
#include "live/launch/output_standby.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <utility>

namespace tidemark::live {
namespace {

constexpr std::size_t kMostChannels = 2;

// In the standby, which is a fork of a process with threads: from here on nothing but system calls.

struct Way {
  int from = -1;  // -1: closed
  int to = -1;
};
using Ways = std::array<Way, kMostChannels>;

void close_all_but(const Ways& ways, int lifeline) {
  std::array<int, 2 * kMostChannels + 1> kept{lifeline};
  std::size_t count = 1;
  for (const Way& way : ways) {
    kept[count++] = way.from;
    kept[count++] = way.to;
  }
  std::sort(kept.begin(), kept.end());
  unsigned first = 0;
  for (const int fd : kept) {
    if (fd > static_cast<int>(first)) {
      (void)::syscall(SYS_close_range, first, static_cast<unsigned>(fd) - 1U, 0U);
    }
    first = std::max(first, static_cast<unsigned>(fd + 1));
  }
  (void)::syscall(SYS_close_range, first, UINT_MAX, 0U);
}

void close_way(Way& way) { ::close(std::exchange(way.from, -1)); }

bool any_open(const Ways& ways) {
  return std::any_of(ways.begin(), ways.end(), [](const Way& way) { return way.from >= 0; });
}

// Until the process that we stand by for has exited, or has dropped all channels.
void wait_for_exit(Ways& ways, int lifeline) {
  while (any_open(ways)) {
    unsigned char dropped = 0;
    const ssize_t n = ::read(lifeline, &dropped, 1);
    if (n == 0 || (n < 0 && errno != EINTR)) {
      return;
    }
    if (n == 1 && dropped < ways.size() && ways[dropped].from >= 0) {
      close_way(ways[dropped]);
    }
  }
}

bool write_whole(int to, const char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(to, bytes, size);
    if (n < 0 && errno == EAGAIN) {
      pollfd room{to, POLLOUT, 0};
      ::poll(&room, 1, -1);
    } else if (n < 0 && errno != EINTR) {
      return errno != EPIPE;  // a full disk is no reason to end the command
    } else if (n > 0) {
      bytes += n;
      size -= static_cast<std::size_t>(n);
    }
  }
  return true;
}

void pass_on(Ways& ways) {
  std::array<char, 16U << 10U> buffer;
  while (any_open(ways)) {
    std::array<pollfd, kMostChannels> waiting{};
    for (std::size_t i = 0; i < ways.size(); ++i) {
      waiting[i] = {ways[i].from, POLLIN, 0};
    }
    if (::poll(waiting.data(), waiting.size(), -1) < 0) {
      continue;
    }
    for (std::size_t i = 0; i < ways.size(); ++i) {
      if (waiting[i].revents == 0) {
        continue;
      }
      const ssize_t n = ::read(ways[i].from, buffer.data(), buffer.size());
      const bool goes_on = n > 0
                               ? write_whole(ways[i].to, buffer.data(), static_cast<std::size_t>(n))
                               : n < 0 && (errno == EINTR || errno == EAGAIN);
      if (!goes_on) {
        close_way(ways[i]);
      }
    }
  }
}

[[noreturn]] void stand_by(Ways ways, int lifeline) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);  // what ends the command ends its output
  ::prctl(PR_SET_NAME, "tidemark-output");
  close_all_but(ways, lifeline);
  wait_for_exit(ways, lifeline);
  pass_on(ways);
  ::_exit(0);
}

}  // namespace

OutputStandby OutputStandby::start(std::span<const OutputChannel> channels) {
  OutputStandby standby;
  int ends[2] = {-1, -1};
  if (channels.size() > kMostChannels || ::pipe2(ends, O_CLOEXEC) != 0) {
    return standby;
  }
  const Fd theirs(ends[0]);
  standby.lifeline_.reset(ends[1]);
  Ways ways;
  for (std::size_t i = 0; i < channels.size(); ++i) {
    ways[i] = {channels[i].ours.get(), channels[i].sink};
  }
  if (::fork() == 0) {
    stand_by(ways, theirs.get());
  }
  return standby;
}

void OutputStandby::drop(std::size_t channel) const {
  if (lifeline_) {
    const auto number = static_cast<unsigned char>(channel);
    (void)!::write(lifeline_.get(), &number, 1);  // EPIPE: it is gone
  }
}

}  // namespace tidemark::live
