// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "common/fd.h"
#include "common/result.h"

namespace tidemark::guard {

// Runs what tells people about an action: a command of the user's, a message on the desktop. It is
// a small process of its own, forked before anything else happens: a guard that is short of memory
// has nothing to fork, nobody waits for the command, and neither it nor what it starts is part of
// the job or has the guard's protection.
class Notifier {
 public:
  struct Options {
    std::string command;   // for sh -c; empty: none
    bool desktop = false;  // notify-send
  };
  // Call it before any thread is started.
  static Result<Notifier> start(const Options& options);

  struct Notice {
    std::string text;  // for the desktop, and in TIDEMARK_TEXT
    std::vector<std::pair<std::string, std::string>> variables;  // for the command
  };
  // Never waits: false when the helper is gone or far behind.
  bool tell(const Notice& notice) const;

  pid_t pid() const { return pid_; }

 private:
  Notifier(pid_t pid, Fd socket) : pid_(pid), socket_(std::move(socket)) {}

  pid_t pid_;
  Fd socket_;
};

}  // namespace tidemark::guard
