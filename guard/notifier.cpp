// SPDX-License-Identifier: Apache-2.0
#include "guard/notifier.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "common/text.h"

namespace tidemark::guard {
namespace {

constexpr std::size_t kLongestNotice = 16U << 10U;
constexpr std::array kStopSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

bool is_on_path(std::string_view program) {
  const char* const path = std::getenv("PATH");
  for (const std::string_view folder : split(path == nullptr ? "" : path, ':')) {
    if (!folder.empty() &&
        ::access((std::string(folder) + '/' + std::string(program)).c_str(), X_OK) == 0) {
      return true;
    }
  }
  return false;
}

void spawn(std::vector<std::string> argv) {
  std::vector<char*> pointers;
  pointers.reserve(argv.size() + 1);
  for (std::string& argument : argv) {
    pointers.push_back(argument.data());
  }
  pointers.push_back(nullptr);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t defaults;
  ::sigemptyset(&defaults);
  ::sigaddset(&defaults, SIGCHLD);
  for (const int number : kStopSignals) {
    ::sigaddset(&defaults, number);
  }
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  // One that cannot be started tells nobody, and nobody is there to be told.
  (void)::posix_spawnp(&pid, pointers[0], nullptr, &attributes, pointers.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
}

// The life of the helper: until the guard closes its end.
[[noreturn]] void serve(const Fd& socket, const Notifier::Options& options) {
  ::prctl(PR_SET_NAME, "tidemark-notify");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // what a notification leaves behind is not the job's
  ::signal(SIGCHLD, SIG_IGN);          // nobody asks how they ended
  for (const int number : kStopSignals) {
    ::signal(number, SIG_IGN);  // Ctrl-C is meant for the guard; its last words come after it
  }
  // The guard's stdout is the command's.
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  std::vector<char> buffer(kLongestNotice);
  while (true) {
    const ssize_t size = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (size < 0 && errno == EINTR) {
      continue;
    }
    if (size <= 0) {
      ::_exit(0);
    }
    std::string_view rest(buffer.data(), static_cast<std::size_t>(size));
    std::string text;
    for (const std::string_view entry : split(rest, '\0')) {
      const std::size_t equals = entry.find('=');
      if (equals == std::string_view::npos) {
        continue;
      }
      const std::string name(entry.substr(0, equals));
      const std::string value(entry.substr(equals + 1));
      ::setenv(name.c_str(), value.c_str(), 1);
      text = name == "TIDEMARK_TEXT" ? value : text;
    }
    if (!options.command.empty()) {
      spawn({"/bin/sh", "-c", options.command});
    }
    if (options.desktop) {
      spawn({"notify-send", "--app-name=tidemark", "--urgency=critical", "tidemark guard", text});
    }
  }
}

}  // namespace

Result<Notifier> Notifier::start(const Options& options) {
  if (options.desktop && !is_on_path("notify-send")) {
    return Error{Errc::kNotFound, "--desktop needs notify-send (package libnotify-bin)"};
  }
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return system_error("cannot talk to a helper", errno);
  }
  Fd ours(ends[0]);
  Fd its(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) {
    return system_error("cannot start a helper for notifications", errno);
  }
  if (pid == 0) {
    ours.reset();
    serve(its, options);
  }
  return Notifier(pid, std::move(ours));
}

bool Notifier::tell(const Notice& notice) const {
  std::string message = "TIDEMARK_TEXT=" + notice.text;
  for (const auto& [name, value] : notice.variables) {
    message.append(1, '\0').append(name).append(1, '=').append(value);
  }
  message.resize(std::min(message.size(), kLongestNotice));
  return ::send(socket_.get(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(message.size());
}

}  // namespace tidemark::guard
