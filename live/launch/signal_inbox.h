// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <optional>

#include "common/fd.h"
#include "common/result.h"

namespace tidemark::live {

struct ReceivedSignal {
  int number = 0;
  // From the terminal driver: the whole foreground process group got it too, except SIGHUP, which
  // only the leader of a session gets. Otherwise a process sent it, and it may have meant us alone.
  bool from_kernel = false;
  pid_t sender = 0;  // 0 when from_kernel

  // SIGQUIT as well: whoever presses Ctrl-\ wants an end, and would lose the summary, the last
  // samples of the recording and the terminal.
  bool asks_to_stop() const {
    return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
  }
};

// The signals that the main loop wants, as something that poll(2) can wait for. While it lives they
// interrupt nothing; the destructor puts mask and dispositions back as they were, so that a
// second Ctrl-C during a summary ends the program. SIGPIPE is ignored meanwhile: writes say EPIPE.
// Signals that we were started with as ignored (nohup, background jobs) stay so.
//
// Open it before any thread is started: threads inherit the mask. One at a time.
class SignalInbox {
 public:
  enum class For {
    kStop,     // SIGINT, SIGTERM, SIGHUP, SIGQUIT: watching processes that are not ours
    kCommand,  // also what a command that we run must get, and SIGCHLD
  };
  static Result<SignalInbox> open(For purpose);
  ~SignalInbox();
  SignalInbox(SignalInbox&&) noexcept = default;
  SignalInbox& operator=(SignalInbox&&) = delete;

  // Readable when a signal has come.
  int fd() const { return fd_.get(); }
  // The next signal; nullopt when there is none now.
  std::optional<ReceivedSignal> next();

  // What a command must find: the mask that we found, and SIGPIPE as it was.
  const sigset_t& original_mask() const { return original_mask_; }
  bool sigpipe_was_ignored() const { return original_sigpipe_.sa_handler == SIG_IGN; }

 private:
  SignalInbox() = default;

  Fd fd_;
  sigset_t original_mask_{};
  struct sigaction original_sigpipe_ {};
  struct sigaction original_sigchld_ {};
};

}  // namespace tidemark::live
