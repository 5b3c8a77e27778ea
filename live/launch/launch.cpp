// SPDX-License-Identifier: Apache-2.0
#include "live/launch/launch.h"

#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/text.h"
#include "monitor/procfs/launch_mark.h"
#include "monitor/procfs/process_handle.h"

namespace tidemark::live {
namespace {

// Our environment with these variables in it. The strings live as long as `environ` and `changed`.
std::vector<char*> environment_with(std::vector<std::string>& changed) {
  std::vector<char*> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    const bool is_changed =
        std::any_of(changed.begin(), changed.end(), [&](const std::string& other) {
          return other.size() > name.size() && other.starts_with(name) && other[name.size()] == '=';
        });
    if (!is_changed) {
      all.push_back(*entry);
    }
  }
  for (std::string& entry : changed) {
    all.push_back(entry.data());
  }
  all.push_back(nullptr);
  return all;
}

// posix_spawn's two option objects, released together.
class SpawnSetup {
 public:
  SpawnSetup(const LaunchOptions& options, const SignalInbox& inbox) {
    for (const auto& [name, value] : options.environment) {
      variables_.push_back(fmt::format("{}={}", name, value));
    }
    variables_.push_back(fmt::format("{}={}", monitor::kLaunchVariable, monitor::launch_value()));
    environment_ = environment_with(variables_);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawn_file_actions_init(&actions_);
    sigset_t defaults;
    ::sigemptyset(&defaults);
    if (!inbox.sigpipe_was_ignored()) {
      ::sigaddset(&defaults, SIGPIPE);
    }
    ::posix_spawnattr_setsigmask(&attributes_, &inbox.original_mask());
    ::posix_spawnattr_setsigdefault(&attributes_, &defaults);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (options.stdin_fd >= 0) {
      ::posix_spawn_file_actions_adddup2(&actions_, options.stdin_fd, STDIN_FILENO);
    }
    if (options.stdout_fd >= 0) {
      ::posix_spawn_file_actions_adddup2(&actions_, options.stdout_fd, STDOUT_FILENO);
    }
    if (options.stderr_fd >= 0) {
      ::posix_spawn_file_actions_adddup2(&actions_, options.stderr_fd, STDERR_FILENO);
    }
  }
  ~SpawnSetup() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;

  // 0 or the errno of what failed in the child, up to and including exec.
  int spawn(const std::vector<std::string>& argv, pid_t& pid) const {
    std::vector<char*> arguments;
    arguments.reserve(argv.size() + 1);
    for (const std::string& argument : argv) {
      arguments.push_back(const_cast<char*>(argument.c_str()));  // POSIX: not modified
    }
    arguments.push_back(nullptr);
    return ::posix_spawnp(&pid, arguments[0], &actions_, &attributes_, arguments.data(),
                          environment_.data());
  }

 private:
  std::vector<std::string> variables_;
  std::vector<char*> environment_;
  posix_spawnattr_t attributes_{};
  posix_spawn_file_actions_t actions_{};
};

// Stops this process as the default action of SIGTSTP would (which a process group that no shell
// looks after does not obey), although the signal is blocked. Returns when we are continued.
void stop_ourselves() {
  sigset_t only;
  ::sigemptyset(&only);
  ::sigaddset(&only, SIGTSTP);
  ::raise(SIGTSTP);
  ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  ::pthread_sigmask(SIG_BLOCK, &only, nullptr);
}

// The terminal is gone. Unlike what is typed, which goes to the foreground group, the kernel tells
// this to the leader of the session alone: that is us under `ssh -t` or `docker run -t`.
bool is_hang_up(const ReceivedSignal& signal) {
  return signal.number == SIGHUP && signal.from_kernel && ::getsid(0) == ::getpid();
}

}  // namespace

Result<LaunchedCommand> LaunchedCommand::start(const LaunchOptions& options,
                                               const SignalInbox& inbox) {
  if (options.argv.empty() || options.argv.front().empty()) {
    return Error{Errc::kUsage, "no command given after --"};
  }
  const SpawnSetup setup(options, inbox);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  pid_t pid = 0;
  int error = setup.spawn(options.argv, pid);
  if (error == ENOEXEC && options.argv.front().find('/') != std::string::npos) {
    // A script without "#!": a shell's job, as execvp(3) and every shell see it.
    std::vector<std::string> script = {"/bin/sh"};
    script.insert(script.end(), options.argv.begin(), options.argv.end());
    error = setup.spawn(script, pid);
  }
  if (error != 0) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
    return system_error(fmt::format("cannot start {}", escape_text(options.argv.front())), error);
  }
  // Readable even if it has ended: nobody but us can reap it.
  const auto key = monitor::process_key_of("/proc", pid);
  return LaunchedCommand(key ? *key : ProcessKey{pid, 0});
}

LaunchedCommand::LaunchedCommand(LaunchedCommand&& other) noexcept
    : key_(std::exchange(other.key_, {})),
      wait_status_(other.wait_status_),
      reaped_(std::move(other.reaped_)) {}

LaunchedCommand::~LaunchedCommand() {
  if (key_.pid != 0) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  }
}

void LaunchedCommand::handle(const ReceivedSignal& signal) {
  if (signal.number == SIGCHLD) {
    reap();
    return;
  }
  // A window size is copied to the command's own terminal first, if it has one; and these two can
  // come twice without harm.
  const bool repeatable = signal.number == SIGWINCH || signal.number == SIGCONT;
  if (running() && (!signal.from_kernel || repeatable || is_hang_up(signal))) {
    ::kill(key_.pid, signal.number);
  }
  if (signal.number == SIGTSTP) {
    stop_ourselves();
  }
}

namespace {

// A child that has exited, of those that this thread waits for; 0: none has. A thread of ours may
// have a child under ptrace: when that stops, that thread waits for it, and must find it waiting.
pid_t exited_child() {
  siginfo_t child{};
  while (::waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT | __WNOTHREAD) != 0) {
    if (errno != EINTR) {
      return 0;
    }
  }
  const bool has_exited =
      child.si_code == CLD_EXITED || child.si_code == CLD_KILLED || child.si_code == CLD_DUMPED;
  return has_exited ? child.si_pid : 0;
}

}  // namespace

void LaunchedCommand::reap() {
  while (const pid_t child = exited_child()) {
    int status = 0;
    const pid_t pid = ::waitpid(child, &status, WNOHANG);
    if (pid < 0 && errno == EINTR) {
      continue;
    }
    if (pid <= 0) {
      return;
    }
    if (pid == key_.pid) {
      wait_status_ = status;
    }
    reaped_.push_back({pid, status});
  }
}

std::optional<int> LaunchedCommand::exit_code() const {
  if (!wait_status_) {
    return std::nullopt;
  }
  return WIFSIGNALED(*wait_status_) ? 128 + WTERMSIG(*wait_status_) : WEXITSTATUS(*wait_status_);
}

std::vector<ReapedChild> LaunchedCommand::take_reaped() { return std::exchange(reaped_, {}); }

}  // namespace tidemark::live
