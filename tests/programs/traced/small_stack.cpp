// SPDX-License-Identifier: Apache-2.0
// Starts programs with a large environment of its own from a thread with the smallest stack: by
// posix_spawn, and by exec in children of vfork. Fails if the memory that this took is not given
// back.
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr int kVariables = 1500;
constexpr int kPrograms = 40;  // more than a table of what is in use would hold

std::vector<char*> g_environment;
char g_true[] = "/bin/true";
char* const kArguments[] = {g_true, nullptr};

bool ended_well(pid_t pid) {
  int status = 0;
  return pid > 0 && ::waitpid(pid, &status, 0) == pid && status == 0;
}

bool spawn() {
  pid_t pid = 0;
  return ::posix_spawn(&pid, g_true, nullptr, nullptr, kArguments, g_environment.data()) == 0 &&
         ended_well(pid);
}

bool exec_in_child_of_vfork() {
  const pid_t pid = ::vfork();
  if (pid == 0) {
    ::execve("/nowhere", kArguments, g_environment.data());
    ::execve(g_true, kArguments, g_environment.data());
    ::_exit(9);
  }
  return ended_well(pid);
}

// Without memory of the heap.
int count_mappings() {
  char text[512];
  const int fd = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  int lines = 0;
  for (ssize_t bytes = 0; (bytes = ::read(fd, text, sizeof(text))) > 0;) {
    for (ssize_t i = 0; i < bytes; ++i) {
      lines += text[i] == '\n' ? 1 : 0;
    }
  }
  ::close(fd);
  return lines;
}

void* run(void* failed) {
  int& code = *static_cast<int*>(failed);
  code = spawn() ? 0 : 1;
  int before = 0;
  for (int i = 0; i < kPrograms && code == 0; ++i) {
    code = exec_in_child_of_vfork() ? 0 : 2;
    before = i == 0 ? count_mappings() : before;
  }
  code = code == 0 && count_mappings() > before + 4 ? 3 : code;
  return nullptr;
}

}  // namespace

int main() {
  std::vector<std::string> variables;
  variables.reserve(kVariables);
  for (int i = 0; i < kVariables; ++i) {
    variables.push_back("VARIABLE_" + std::to_string(i) + "=x");
  }
  for (std::string& variable : variables) {
    g_environment.push_back(variable.data());
  }
  g_environment.push_back(nullptr);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, static_cast<std::size_t>(PTHREAD_STACK_MIN));
  pthread_t thread = 0;
  int code = 4;
  if (pthread_create(&thread, &small, run, &code) != 0) {
    return 5;
  }
  pthread_join(thread, nullptr);
  return code;
}
