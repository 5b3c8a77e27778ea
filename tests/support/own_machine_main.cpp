// SPDX-License-Identifier: Apache-2.0
// The main() of tests that look at the whole machine: they run in a pid namespace of their own,
// with a /proc and a /dev/shm that show nothing else, so that other jobs do not matter. Where that
// is not allowed they run as they are.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string>

#include <fmt/format.h>

namespace {

constexpr int kNotAllowed = 119;  // as an exit status: nothing was run

// As a shell reports it.
int exit_code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Whatever else ends meanwhile is an orphan of the tests.
int wait_for(pid_t child) {
  while (true) {
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, 0);
    if (ended == child) {
      return exit_code_of(status);
    }
    if (ended < 0 && errno != EINTR) {
      return EXIT_FAILURE;
    }
  }
}

bool write_text(const char* path, const std::string& text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  const bool written =
      fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  return written;
}

// Without root: a user namespace in which we are who we are.
bool leave_namespaces() {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  if (::unshare(CLONE_NEWNS | CLONE_NEWPID | (uid == 0 ? 0 : CLONE_NEWUSER)) != 0) {
    return false;
  }
  return uid == 0 || (write_text("/proc/self/setgroups", "deny") &&
                      write_text("/proc/self/uid_map", fmt::format("{0} {0} 1", uid)) &&
                      write_text("/proc/self/gid_map", fmt::format("{0} {0} 1", gid)));
}

bool mount_own_files() {
  return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0 &&
         ::mount("none", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") == 0;
}

// The first process of the new namespace, which the kernel ends with all that is left in it. The
// tests are another one: to the first, signals mean little.
[[noreturn]] void run_as_init() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!mount_own_files()) {
    ::_exit(kNotAllowed);
  }
  const pid_t tests = ::fork();
  if (tests == 0) {
    std::exit(RUN_ALL_TESTS());
  }
  ::_exit(tests < 0 ? kNotAllowed : wait_for(tests));
}

// nullopt: not allowed, and nothing was run.
std::optional<int> run_in_own_namespaces() {
  const pid_t between = ::fork();
  if (between == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!leave_namespaces()) {
      ::_exit(kNotAllowed);
    }
    const pid_t init = ::fork();
    if (init == 0) {
      run_as_init();
    }
    ::_exit(init < 0 ? kNotAllowed : wait_for(init));
  }
  const int code = between < 0 ? kNotAllowed : wait_for(between);
  return code == kNotAllowed ? std::nullopt : std::optional(code);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  if (!GTEST_FLAG_GET(list_tests)) {
    if (const std::optional<int> code = run_in_own_namespaces()) {
      return *code;
    }
  }
  return RUN_ALL_TESTS();
}
