// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/helper_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "common/io.h"

namespace tidemark::harness {
namespace {

struct Pipe {
  Fd read;
  Fd write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return system_error("pipe", errno);
  }
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

void replace_all(std::string& text, std::string_view from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts) {
    result.push_back(text.data());
  }
  result.push_back(nullptr);
  return result;
}

}  // namespace

Result<std::string> helper_path() {
  TIDEMARK_TRY_ASSIGN(auto self, read_link_at(AT_FDCWD, "/proc/self/exe"));
  std::string path = self.substr(0, self.rfind('/') + 1) + "tidemark-harness-helper";
  if (::access(path.c_str(), X_OK) != 0) {
    return system_error(path, errno);
  }
  return path;
}

HelperProcess::~HelperProcess() {
  to_helper.reset();
  from_helper.reset();
  if (pid > 0) {
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

Result<HelperProcess> start_helper(std::vector<std::string> argv, std::string role) {
  TIDEMARK_TRY_ASSIGN(auto path, helper_path());
  auto to_helper = make_pipe();
  auto from_helper = make_pipe();
  if (!to_helper || !from_helper) {
    return to_helper ? from_helper.error() : to_helper.error();
  }
  const int read_fd = to_helper->read.get();
  const int write_fd = from_helper->write.get();
  replace_all(role, "READ_FD", std::to_string(read_fd));
  replace_all(role, "WRITE_FD", std::to_string(write_fd));
  for (std::string& word : argv) {
    replace_all(word, "READ_FD", std::to_string(read_fd));
    replace_all(word, "WRITE_FD", std::to_string(write_fd));
  }
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    environment.emplace_back(*entry);
  }
  environment.push_back(std::string(kHelperVariable) + "=" + role);

  // A descriptor that is duplicated onto itself loses its close-on-exec flag in the child.
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, read_fd, read_fd);
  ::posix_spawn_file_actions_adddup2(&actions, write_fd, write_fd);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, path.c_str(), &actions, nullptr, pointers(argv).data(),
                                  pointers(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return system_error(path, error);
  }
  HelperProcess helper;
  helper.pid = pid;
  helper.to_helper = std::move(to_helper->write);
  helper.from_helper = std::move(from_helper->read);
  return helper;
}

}  // namespace tidemark::harness
