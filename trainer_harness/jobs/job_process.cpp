// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/jobs/job_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/io.h"
#include "common/text.h"

namespace tidemark::harness {
namespace {

constexpr std::size_t kMaxLineBytes = 64U << 10U;

// Runs between fork and exec in a program with threads: must not allocate or take a lock.
[[noreturn]] void become_job(char* const* argv, const JobDescriptors& descriptors, pid_t server,
                             int error_fd) {
  ::setpgid(0, 0);
  ::signal(SIGPIPE, SIG_DFL);  // exec would keep it ignored
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != server) {
    ::_exit(0);  // the server died before prctl
  }
  if (::dup2(descriptors.stdout_fd, STDOUT_FILENO) >= 0 &&
      ::dup2(descriptors.stderr_fd, STDERR_FILENO) >= 0 &&
      ::fcntl(descriptors.progress_fd, F_SETFD, 0) == 0) {
    ::execv(argv[0], argv);
  }
  const int error = errno;
  // If this fails, the exit code has to do.
  [[maybe_unused]] const ssize_t written = ::write(error_fd, &error, sizeof error);
  ::_exit(127);
}

std::vector<char*> pointers_of(const std::vector<std::string>& argv) {
  std::vector<char*> pointers;
  pointers.reserve(argv.size() + 1);
  for (const std::string& argument : argv) {
    pointers.push_back(const_cast<char*>(argument.c_str()));  // execv(3): not modified
  }
  pointers.push_back(nullptr);
  return pointers;
}

// The errno of a failed exec; 0: the pipe was closed by a successful one.
int read_exec_error(int fd) {
  std::array<char, sizeof(int)> bytes{};
  const auto size = read_some(fd, bytes);
  int error = 0;
  if (size && *size == bytes.size()) {
    std::memcpy(&error, bytes.data(), bytes.size());
  }
  return error;
}

int wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// Processes that left the group of the job, as its shared memory manager does, are our children
// now. They should end by themselves after the job; we do not wait longer than this.
void reap_adopted_children() {
  constexpr std::int64_t kLongestWaitNs = 2 * kNsPerSecond;
  const SystemClock clock;
  const std::int64_t deadline_ns = clock.monotonic_ns() + kLongestWaitNs;
  while (true) {
    const pid_t ended = ::waitpid(-1, nullptr, WNOHANG);
    if ((ended < 0 && errno == ECHILD) || clock.monotonic_ns() >= deadline_ns) {
      return;
    }
    if (ended == 0) {
      ::usleep(1000);
    }
  }
}

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

Result<JobProcess> JobProcess::start(const std::vector<std::string>& argv,
                                     const JobDescriptors& descriptors) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return system_error("cannot make a pipe for a job", errno);
  }
  const Fd error_read(ends[0]);
  Fd error_write(ends[1]);
  // Orphans of the job become our children, not those of init.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const std::vector<char*> arguments = pointers_of(argv);
  const pid_t server = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    return system_error("cannot start a process for a job", errno);
  }
  if (pid == 0) {
    become_job(arguments.data(), descriptors, server, error_write.get());
  }
  ::setpgid(pid, pid);  // parent and child both call it, so it is done in time; fails after exec
  error_write.reset();
  if (const int error = read_exec_error(error_read.get()); error != 0) {
    wait_for(pid);
    return system_error(fmt::format("cannot start {}", escape_text(argv.front())), error);
  }
  return JobProcess(pid);
}

JobProcess::JobProcess(pid_t pid)
    : pid_(pid), end_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}

JobProcess::JobProcess(JobProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), end_(std::move(other.end_)) {}

JobProcess::~JobProcess() {
  if (pid_ > 0) {
    kill_group();
    while (!reap_if_ended()) {
      ::waitid(P_PID, static_cast<id_t>(pid_), nullptr, WEXITED | WNOWAIT);
    }
  }
}

void JobProcess::signal(int number) const { ::kill(pid_, number); }

void JobProcess::kill_group() const { ::kill(-pid_, SIGKILL); }

std::optional<int> JobProcess::reap_if_ended() {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0) {
    return std::nullopt;
  }
  // The leader is still a zombie, so its group id cannot have been reused.
  kill_group();
  const int status = wait_for(pid_);
  while (::waitpid(-pid_, nullptr, 0) > 0 || errno == EINTR) {
  }
  reap_adopted_children();
  pid_ = -1;
  return status;
}

}  // namespace tidemark::harness
