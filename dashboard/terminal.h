// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <termios.h>

#include <atomic>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/fd.h"
#include "common/quiet_thread.h"
#include "common/result.h"

namespace tidemark::dashboard {

struct TerminalSize {
  int width = 0;
  int height = 0;

  bool operator==(const TerminalSize&) const = default;
};

// The terminal of this process while a screen is on it: other screen, no echo, keys one by one,
// mouse. It is put back as it was by the destructor, and by handlers of every signal that would end
// this process and that nobody else handles. Ctrl-C still sends SIGINT, Ctrl-\ SIGQUIT; Ctrl-Z does
// nothing. One at a time, opened and destroyed by the same thread.
class Terminal {
 public:
  static Result<Terminal> open();
  ~Terminal();
  Terminal(Terminal&& other) noexcept;
  Terminal& operator=(Terminal&&) = delete;

  // Readable when keys have come.
  int fd() const { return fd_.get(); }
  TerminalSize size() const;

  // Whose it is now: a shell takes it while we are stopped, or in the background.
  enum class Ownership {
    kOurs,
    kRegained,  // just now: nothing that was drawn is there any more
    kAway,      // not to be drawn on or read from
  };
  // `may_have_been_stopped`: no time has passed for us, though it did for others.
  Ownership check_ownership(bool may_have_been_stopped);

  // After SIGTSTP: gives the terminal back, stops this process until it is continued, and is true.
  // To be called by the thread that draws: nothing comes on the screen of the shell meanwhile.
  bool stop_if_told();

  // Waits for a terminal that stalls (a hung ssh) only until `give_up` is set; false then, and when
  // the terminal is gone.
  bool write(std::string_view bytes, const std::atomic<bool>& give_up) const;

 private:
  explicit Terminal(Fd fd) : fd_(std::move(fd)) {}
  void take_over();
  void handle_signals();
  void enter() const;

  Fd fd_;
  SignalStack signal_stack_;
  bool is_taken_ = false;
  bool is_away_ = false;
};

// Whether there is a terminal that a screen can be drawn on.
bool terminal_is_usable();
// What the environment says: UTF-8 locale; NO_COLOR (https://no-color.org) and a terminal without.
bool terminal_knows_utf8();
bool terminal_wants_color();

// What to send to a terminal so that it shows these lines, given what it shows already: only lines
// that differ.
class FramePainter {
 public:
  std::string paint(std::vector<std::string> lines, const TerminalSize& size);
  // The terminal shows something else: everything is sent again.
  void forget() { shown_.clear(); }

 private:
  std::vector<std::string> shown_;
  TerminalSize size_;
};

}  // namespace tidemark::dashboard
