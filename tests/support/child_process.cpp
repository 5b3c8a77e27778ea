// SPDX-License-Identifier: Apache-2.0
#include "tests/support/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "common/check.h"

namespace tidemark::tests {
namespace {

struct Pipe {
  Fd read_end;
  Fd write_end;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  TIDEMARK_CHECK(::pipe2(ends.data(), O_CLOEXEC) == 0, "cannot make a pipe");
  return {Fd(ends[0]), Fd(ends[1])};
}

bool read_byte(int fd) {
  char byte = 0;
  ssize_t n = -1;
  do {
    n = ::read(fd, &byte, 1);
  } while (n < 0 && errno == EINTR);
  return n == 1;
}

}  // namespace

void ChildProcess::Link::signal_ready() const {
  TIDEMARK_CHECK(::write(out_, "r", 1) == 1, "the test is gone");
}

void ChildProcess::Link::wait_for_order() const {
  if (!read_byte(in_)) {
    ::_exit(0);
  }
}

ChildProcess::ChildProcess(const std::function<void(const Link&)>& code) {
  Pipe up = make_pipe();
  Pipe down = make_pipe();
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  TIDEMARK_CHECK(pid_ >= 0, "cannot fork");
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) {
      ::_exit(0);
    }
    up.read_end.reset();
    down.write_end.reset();
    code(Link(down.read_end.get(), up.write_end.get()));
    ::_exit(0);
  }
  from_child_ = std::move(up.read_end);
  to_child_ = std::move(down.write_end);
}

ChildProcess::~ChildProcess() {
  kill();
  wait();
}

bool ChildProcess::wait_ready() const { return read_byte(from_child_.get()); }

void ChildProcess::give_order() const {
  TIDEMARK_CHECK(::write(to_child_.get(), "o", 1) == 1, "the child is gone");
}

void ChildProcess::kill() {
  if (!status_) {
    ::kill(pid_, SIGKILL);
  }
}

int ChildProcess::wait() {
  if (!status_) {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    status_ = status;
  }
  return *status_;
}

void ChildProcess::wait_until_zombie() const {
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
}

}  // namespace tidemark::tests
