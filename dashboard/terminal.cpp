// SPDX-License-Identifier: Apache-2.0
#include "dashboard/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "common/quiet_thread.h"

namespace tidemark::dashboard {
namespace {

// Other screen, no cursor, no wrapping; mouse buttons with SGR coordinates. And back. It clears
// nothing: every frame after it is whole.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?1000h\x1b[?1006h";
constexpr std::string_view kLeave = "\x1b[?1006l\x1b[?1000l\x1b[?7h\x1b[?25h\x1b[0m\x1b[?1049l";

// For handlers of signals, which reach nothing else.
struct Rescue {
  std::atomic<int> fd = -1;  // -1: the terminal is as it was
  termios mode{};
  std::atomic<bool> is_dying = false;
  std::atomic<bool> is_told_to_stop = false;
  sigset_t handled{};
  std::array<struct sigaction, NSIG> before{};
};
Rescue g_rescue;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

// A terminal that another thread writes to just now, or that stalls, says EAGAIN: it has a moment.
void write_shortly(int fd, std::string_view bytes) {
  constexpr int kTries = 20;
  constexpr int kPauseMs = 10;
  for (int i = 0; i < kTries && !bytes.empty(); ++i) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      (void)::poll(nullptr, 0, kPauseMs);
    } else if (errno != EINTR) {
      return;  // a terminal that is gone needs no restoring
    }
  }
}

// Once, whoever comes first.
void restore() {
  const int fd = g_rescue.fd.exchange(-1);
  if (fd < 0) {
    return;
  }
  // From a background process group this would stop us.
  sigset_t blocked;
  sigset_t mask;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTTOU);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &mask);
  write_shortly(fd, kLeave);
  ::tcsetattr(fd, TCSANOW, &g_rescue.mode);  // draining could wait for ever
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

extern "C" void restore_and_die(int number) {
  g_rescue.is_dying = true;  // the thread that draws must not draw over it
  restore();
  ::signal(number, SIG_DFL);
  ::raise(number);
}

extern "C" void note_the_stop(int /*number*/) { g_rescue.is_told_to_stop = true; }

bool is_crash(int number) {
  return std::find(kCrashSignals.begin(), kCrashSignals.end(), number) != kCrashSignals.end();
}

// By its default action, see signal(7). Real-time signals are all of this kind.
bool ends_a_process(int number) {
  switch (number) {
    case SIGKILL:  // nobody can handle it
    case SIGCHLD:
    case SIGCONT:
    case SIGURG:
    case SIGWINCH:
    case SIGSTOP:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
      return false;
    default:
      return number <= SIGSYS || (number >= SIGRTMIN && number <= SIGRTMAX);
  }
}

bool is_default(int number) {
  struct sigaction action {};
  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_DFL;
}

const char* environment(const char* name) {
  // Nothing of ours changes the environment. NOLINTNEXTLINE(concurrency-mt-unsafe)
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? nullptr : value;
}

}  // namespace

Result<Terminal> Terminal::open() {
  // Opened anew, so that not to block is our own business and not that of the shell.
  Fd fd(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd) {
    return system_error("cannot open the terminal", errno);
  }
  Terminal terminal(std::move(fd));
  if (::tcgetattr(terminal.fd(), &g_rescue.mode) != 0) {
    return system_error("cannot read the mode of the terminal", errno);
  }
  terminal.take_over();
  return terminal;
}

void Terminal::take_over() {
  handle_signals();
  enter();
  is_taken_ = true;
}

// A handler that is there has its reasons, except for crashes: a sanitizer's would end the process
// too.
void Terminal::handle_signals() {
  ::sigemptyset(&g_rescue.handled);
  for (int number = 1; number < NSIG; ++number) {
    const bool is_stop = number == SIGTSTP;
    if (!is_stop && !ends_a_process(number)) {
      continue;
    }
    if (!is_crash(number) && !is_default(number)) {
      continue;
    }
    struct sigaction action {};
    action.sa_handler = is_stop ? note_the_stop : restore_and_die;
    action.sa_flags = is_stop ? SA_RESTART : SA_NODEFER | SA_ONSTACK;
    if (::sigaction(number, &action, &g_rescue.before[static_cast<std::size_t>(number)]) == 0) {
      ::sigaddset(&g_rescue.handled, number);
    }
  }
}

void Terminal::enter() const {
  if (g_rescue.is_dying) {
    return;
  }
  g_rescue.fd = fd_.get();
  termios mode = g_rescue.mode;
  mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | IEXTEN);
  mode.c_iflag &= ~static_cast<tcflag_t>(ICRNL | INLCR | IXON);
  mode.c_cc[VMIN] = 0;
  mode.c_cc[VTIME] = 0;
  mode.c_cc[VSUSP] = _POSIX_VDISABLE;
  ::tcsetattr(fd_.get(), TCSANOW, &mode);
  const std::atomic<bool> at_once = true;
  (void)write(kEnter, at_once);  // the next frame fails as well then, and tells
}

Terminal::Ownership Terminal::check_ownership(bool may_have_been_stopped) {
  const pid_t owner = ::tcgetpgrp(fd_.get());
  if (owner > 0 && owner != ::getpgrp()) {
    is_away_ = true;
    return Ownership::kAway;
  }
  termios mode{};
  const bool is_changed =
      ::tcgetattr(fd_.get(), &mode) == 0 && (mode.c_lflag & (ICANON | ECHO)) != 0;
  if (!std::exchange(is_away_, false) && !may_have_been_stopped && !is_changed) {
    return Ownership::kOurs;
  }
  enter();
  return Ownership::kRegained;
}

bool Terminal::stop_if_told() {
  if (!g_rescue.is_told_to_stop.exchange(false)) {
    return false;
  }
  if (!is_away_) {
    restore();
  }
  // As the default action does it: a process group that no shell looks after goes on at once.
  struct sigaction by_default {};
  struct sigaction ours {};
  by_default.sa_handler = SIG_DFL;
  ::sigaction(SIGTSTP, &by_default, &ours);
  sigset_t only;
  sigset_t mask;
  ::sigemptyset(&only);
  ::sigaddset(&only, SIGTSTP);
  ::raise(SIGTSTP);
  ::pthread_sigmask(SIG_UNBLOCK, &only, &mask);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  ::sigaction(SIGTSTP, &ours, nullptr);
  return true;
}

Terminal::Terminal(Terminal&& other) noexcept
    : fd_(std::move(other.fd_)),
      signal_stack_(std::move(other.signal_stack_)),
      is_taken_(std::exchange(other.is_taken_, false)) {}

Terminal::~Terminal() {
  if (!is_taken_) {
    return;
  }
  restore();
  for (int number = 1; number < NSIG; ++number) {
    if (::sigismember(&g_rescue.handled, number) == 1) {
      ::sigaction(number, &g_rescue.before[static_cast<std::size_t>(number)], nullptr);
    }
  }
}

TerminalSize Terminal::size() const {
  winsize size{};
  constexpr TerminalSize kUsual{80, 24};
  constexpr int kLargest = 1000;
  if (::ioctl(fd_.get(), TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return kUsual;
  }
  return {std::min<int>(size.ws_col, kLargest), std::min<int>(size.ws_row, kLargest)};
}

bool Terminal::write(std::string_view bytes, const std::atomic<bool>& give_up) const {
  constexpr int kPatienceMs = 100;
  while (!bytes.empty()) {
    if (g_rescue.is_dying) {
      return false;
    }
    const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) {
      return false;
    }
    if (give_up) {
      return false;
    }
    pollfd writable{fd_.get(), POLLOUT, 0};
    (void)::poll(&writable, 1, kPatienceMs);
  }
  return true;
}

bool terminal_is_usable() {
  const char* term = environment("TERM");
  return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1 && term != nullptr &&
         std::string_view(term) != "dumb";
}

bool terminal_knows_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (const char* value = environment(name)) {
      const std::string_view locale(value);
      return locale.find("UTF-8") != std::string_view::npos ||
             locale.find("utf-8") != std::string_view::npos ||
             locale.find("UTF8") != std::string_view::npos ||
             locale.find("utf8") != std::string_view::npos;
    }
  }
  return false;
}

bool terminal_wants_color() {
  const char* term = environment("TERM");
  const std::string_view name = term == nullptr ? "" : term;
  return environment("NO_COLOR") == nullptr && name != "vt100" && name != "vt220" &&
         name.find("-mono") == std::string_view::npos;
}

std::string FramePainter::paint(std::vector<std::string> lines, const TerminalSize& size) {
  std::string bytes;
  if (shown_.empty() || size_ != size) {
    bytes = "\x1b[0m\x1b[2J";
    shown_.assign(lines.size(), "");
    size_ = size;
  }
  shown_.resize(lines.size());
  for (std::size_t y = 0; y < lines.size(); ++y) {
    if (lines[y] != shown_[y]) {
      bytes += fmt::format("\x1b[{};1H{}", y + 1, lines[y]);
    }
  }
  shown_ = std::move(lines);
  return bytes;
}

}  // namespace tidemark::dashboard
