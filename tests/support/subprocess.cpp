// SPDX-License-Identifier: Apache-2.0
#include "tests/support/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "common/check.h"
#include "common/io.h"

namespace tidemark::tests {
namespace {

constexpr int kPatienceMs = 20'000;

struct Pipe {
  Pipe() {
    int ends[2] = {-1, -1};
    TIDEMARK_CHECK(::pipe2(ends, O_CLOEXEC) == 0, "no pipe");
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
  }
  Fd read_end;
  Fd write_end;
};

[[noreturn]] void become(const std::vector<std::string>& argv) {
  std::vector<char*> arguments;
  for (const std::string& argument : argv) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  ::_exit(127);
}

}  // namespace

bool can_open_terminals() {
  const Fd terminal(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  return static_cast<bool>(terminal);
}

Subprocess::Subprocess(const std::vector<std::string>& argv, Terminal terminal) {
  if (terminal == Terminal::kControlling) {
    const winsize size{24, 80, 0, 0};
    int master = -1;
    pid_ = ::forkpty(&master, nullptr, nullptr, &size);
    TIDEMARK_CHECK(pid_ >= 0, "cannot fork");
    if (pid_ == 0) {
      become(argv);
    }
    ::fcntl(master, F_SETFD, FD_CLOEXEC);
    output_fd_.reset(master);
    input_.reset(::fcntl(master, F_DUPFD_CLOEXEC, 0));
    return;
  }
  Pipe in;
  Pipe out;
  Pipe err;
  pid_ = ::fork();
  TIDEMARK_CHECK(pid_ >= 0, "cannot fork");
  if (pid_ == 0) {
    ::dup2(in.read_end.get(), STDIN_FILENO);
    ::dup2(out.write_end.get(), STDOUT_FILENO);
    ::dup2(err.write_end.get(), STDERR_FILENO);
    become(argv);
  }
  input_ = std::move(in.write_end);
  output_fd_ = std::move(out.read_end);
  errors_fd_ = std::move(err.read_end);
}

Subprocess::~Subprocess() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

void Subprocess::send(std::string_view input) const {
  TIDEMARK_CHECK(write_all(input_.get(), input).has_value(), "the program takes no input");
}
void Subprocess::close_input() { input_.reset(); }
void Subprocess::close_output() { output_fd_.reset(); }
void Subprocess::signal(int number) const { ::kill(pid_, number); }

void Subprocess::resize(unsigned short rows, unsigned short columns) const {
  const winsize size{rows, columns, 0, 0};
  ::ioctl(output_fd_.get(), TIOCSWINSZ, &size);
}

bool Subprocess::read_some(int timeout_ms) {
  std::array<pollfd, 2> wanted = {{{output_fd_.get(), POLLIN, 0}, {errors_fd_.get(), POLLIN, 0}}};
  if (::poll(wanted.data(), wanted.size(), timeout_ms) <= 0) {
    return false;
  }
  std::array<char, 65536> buffer{};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].revents == 0) {
      continue;
    }
    Fd& fd = i == 0 ? output_fd_ : errors_fd_;
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n > 0) {
      (i == 0 ? output_ : errors_).append(buffer.data(), static_cast<std::size_t>(n));
    } else {
      fd.reset();
    }
  }
  return true;
}

const std::string& Subprocess::read_until(std::string_view text) {
  while (output_fd_ && output_.find(text) == std::string::npos && read_some(kPatienceMs)) {
  }
  return output_;
}

void Subprocess::read_for(std::chrono::milliseconds time) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + time;
  while (output_fd_) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) {
      return;
    }
    (void)read_some(static_cast<int>(left.count()));
  }
}

int Subprocess::wait() {
  while ((output_fd_ || errors_fd_) && read_some(-1)) {
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace tidemark::tests
