// SPDX-License-Identifier: Apache-2.0
#include "live/launch/signal_inbox.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <span>

namespace tidemark::live {
namespace {

constexpr std::array kStopSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr std::array kCommandSignals = {SIGINT,  SIGTERM, SIGHUP,   SIGQUIT, SIGUSR1,
                                        SIGUSR2, SIGTSTP, SIGWINCH, SIGCONT, SIGCHLD};

bool is_ignored(int number) {
  struct sigaction action {};
  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

struct sigaction replace_disposition(int number, void (*handler)(int)) {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = handler;
  ::sigaction(number, &action, &before);
  return before;
}

}  // namespace

Result<SignalInbox> SignalInbox::open(For purpose) {
  SignalInbox inbox;
  inbox.original_sigpipe_ = replace_disposition(SIGPIPE, SIG_IGN);
  // Ignored, it would make the kernel reap our children before we learn how they ended.
  inbox.original_sigchld_ = replace_disposition(SIGCHLD, SIG_DFL);
  sigset_t wanted;
  ::sigemptyset(&wanted);
  const auto numbers = purpose == For::kStop ? std::span<const int>(kStopSignals)
                                             : std::span<const int>(kCommandSignals);
  for (const int number : numbers) {
    if (!is_ignored(number)) {  // a blocked signal is delivered to the descriptor even if ignored
      ::sigaddset(&wanted, number);
    }
  }
  ::pthread_sigmask(SIG_BLOCK, &wanted, &inbox.original_mask_);
  inbox.fd_.reset(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!inbox.fd_) {
    const int error = errno;
    ::pthread_sigmask(SIG_SETMASK, &inbox.original_mask_, nullptr);
    return system_error("cannot wait for signals", error);
  }
  return inbox;
}

SignalInbox::~SignalInbox() {
  if (!fd_) {
    return;  // moved from
  }
  ::sigaction(SIGPIPE, &original_sigpipe_, nullptr);
  ::sigaction(SIGCHLD, &original_sigchld_, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &original_mask_, nullptr);
}

std::optional<ReceivedSignal> SignalInbox::next() {
  signalfd_siginfo info{};
  ssize_t n = 0;
  do {
    n = ::read(fd_.get(), &info, sizeof info);
  } while (n < 0 && errno == EINTR);
  if (n != static_cast<ssize_t>(sizeof info)) {
    return std::nullopt;
  }
  const bool from_kernel = info.ssi_code > 0;  // SI_USER is 0, what other processes send is below
  return ReceivedSignal{static_cast<int>(info.ssi_signo), from_kernel,
                        from_kernel ? 0 : static_cast<pid_t>(info.ssi_pid)};
}

}  // namespace tidemark::live
