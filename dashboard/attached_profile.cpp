// SPDX-License-Identifier: Apache-2.0
#include "dashboard/attached_profile.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/io.h"
#include "monitor/procfs/process_handle.h"
#include "monitor/procfs/process_signal.h"

namespace tidemark::dashboard {
namespace {

constexpr const char* kThisProgram = "/proc/self/exe";
constexpr std::string_view kOurName = "tidemark: ";

// In the child, which is a copy of one thread of many: nothing here may allocate or lock. SIGINT,
// which stops it, waits until the profile asks for it: before that it would end the program with
// the tracer half attached.
[[noreturn]] void become_profile(pid_t parent, const char* program, char* const* arguments,
                                 int nothing, int errors) {
  ::prctl(PR_SET_PDEATHSIG, SIGINT);
  if (::getppid() != parent) {  // it has died before that
    ::_exit(1);
  }
  ::setpgid(0, 0);  // what is typed is for the screen
  for (int number = 1; number < NSIG; ++number) {
    ::signal(number, SIG_DFL);
  }
  sigset_t waiting;
  ::sigemptyset(&waiting);
  ::sigaddset(&waiting, SIGINT);
  ::sigprocmask(SIG_SETMASK, &waiting, nullptr);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(nothing, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  ::execv(program, arguments);
  ::execv(kThisProgram, arguments);  // its file was replaced
  ::_exit(1);
}

}  // namespace

Result<std::unique_ptr<AttachedProfile>> AttachedProfile::start(const ProcessKey& target,
                                                                std::string name) {
  const auto found = monitor::process_key_of("/proc", target.pid);
  if (!found || *found != target) {
    return Error{Errc::kGone, name + " has exited"};
  }
  TIDEMARK_TRY_ASSIGN(const Fd nothing, open_file("/dev/null", O_RDWR));
  TIDEMARK_TRY_ASSIGN(const std::string program, read_link_at(AT_FDCWD, kThisProgram));
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return system_error("cannot make a pipe", errno);
  }
  Fd errors(ends[0]);
  const Fd its_errors(ends[1]);
  std::vector<std::string> words = {"tidemark", "profile", "--plain", "--pid",
                                    std::to_string(target.pid)};
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    return system_error("cannot start tidemark profile", errno);
  }
  if (pid == 0) {
    become_profile(parent, program.c_str(), arguments.data(), nothing.get(), its_errors.get());
  }
  const auto child = monitor::process_key_of("/proc", pid);  // gone: whoever reaps was quick
  return std::unique_ptr<AttachedProfile>(
      new AttachedProfile(std::move(name), child ? *child : ProcessKey{pid, 0}, std::move(errors)));
}

AttachedProfile::~AttachedProfile() {
  constexpr std::int64_t kLongestNs = 5 * kNsPerSecond;
  constexpr int kBetweenMs = 20;
  const SystemClock clock;
  const std::int64_t end_ns = clock.monotonic_ns() + kLongestNs;
  stop();
  while (!has_ended() && clock.monotonic_ns() < end_ns) {
    (void)take_lines();
    (void)::poll(nullptr, 0, kBetweenMs);
  }
  // The loop around a command reaps all children; without one nobody does.
  if (const auto left = monitor::process_key_of("/proc", child_.pid); left && *left == child_) {
    ::waitpid(child_.pid, nullptr, WNOHANG);
  }
}

std::vector<std::string> AttachedProfile::take_lines() {
  constexpr std::size_t kLongestLine = 4096;
  constexpr int kMostReads = 16;  // the rest can wait
  std::vector<std::string> lines;
  for (int i = 0; i < kMostReads && errors_; ++i) {
    pollfd waiting{errors_.get(), POLLIN, 0};
    if (::poll(&waiting, 1, 0) <= 0) {
      break;
    }
    std::array<char, 1024> buffer{};
    const auto count = read_some(errors_.get(), buffer);
    if (!count || *count == 0) {
      errors_.reset();
      break;
    }
    for (const char letter : std::string_view(buffer.data(), *count)) {
      if (letter != '\n') {
        if (unfinished_line_.size() < kLongestLine) {
          unfinished_line_ += letter;
        }
        continue;
      }
      std::string line = std::exchange(unfinished_line_, {});
      if (line.starts_with(kOurName)) {
        line.erase(0, kOurName.size());
      }
      has_failed_ = has_failed_ || line.starts_with("error: ");
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

void AttachedProfile::stop() {
  is_stopped_ = true;
  monitor::send_signal(child_, SIGINT);
}

bool AttachedProfile::has_ended() const {
  const auto proc = open_file("/proc", O_RDONLY | O_DIRECTORY);
  return proc && !monitor::is_running(proc->get(), child_);
}

std::string AttachedProfile::ending() const {
  if (has_failed_) {
    return "";
  }
  return is_stopped_ ? "detached from " + name_ : name_ + " is no longer traced";
}

}  // namespace tidemark::dashboard
