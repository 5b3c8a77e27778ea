// SPDX-License-Identifier: Apache-2.0
// Starts itself in every way that there is, with an environment that has nothing of ours. With the
// argument "shells" also by a shell, which the C library starts with the program's own environment
// and without a call that could be hooked.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <string>
#include <string_view>

#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

VICTIM_SITE void* in_new_program() { return seen(std::malloc(448)); }
VICTIM_SITE void* in_starter() { return seen(std::malloc(336)); }

namespace {

char* const kClean[] = {const_cast<char*>("LANG=C"), nullptr};
int g_started = 0;

void ended(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (status != 0) {
    std::_Exit(10 + g_started);
  }
  ++g_started;
}

template <typename Exec>
void start(Exec exec) {
  in_starter();
  const pid_t pid = ::vfork();
  if (pid == 0) {
    exec();
    ::_exit(9);
  }
  ended(pid);
}

int start_by_shells(const char* program) {
  const std::string command = '\'' + std::string(program) + "' child";
  if (std::system(command.c_str()) != 0) {
    return 3;
  }
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  for (int letter = 0; pipe != nullptr && (letter = std::getc(pipe)) != EOF;) {
    std::putchar(letter);
  }
  return pipe == nullptr || ::pclose(pipe) != 0 ? 4 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "child") {
    for (int i = 0; i < 30; ++i) {
      in_new_program();
    }
    print_held("vfork_exec", {{"in_new_program", 448 * 30, 30}, {"in_starter", 0, 0}});
    return 0;
  }
  char* const program = argv[0];
  char child[] = "child";
  char* const arguments[] = {program, child, nullptr};
  start([&] { ::execve(program, arguments, kClean); });
  start([&] { ::execv(program, arguments); });
  start([&] { ::execvp(program, arguments); });
  start([&] { ::execvpe(program, arguments, kClean); });
  start([&] { ::execl(program, program, child, nullptr); });
  start([&] { ::execlp(program, program, child, nullptr); });
  start([&] { ::execle(program, program, child, nullptr, kClean); });
  const int fd = ::open(program, O_RDONLY | O_CLOEXEC);
  start([&] { ::fexecve(fd, arguments, kClean); });
  start([&] { ::execveat(fd, "", arguments, kClean, AT_EMPTY_PATH); });
  pid_t pid = 0;
  if (::posix_spawn(&pid, program, nullptr, nullptr, arguments, kClean) != 0) {
    return 1;
  }
  ended(pid);
  if (::posix_spawnp(&pid, program, nullptr, nullptr, arguments, kClean) != 0) {
    return 2;
  }
  ended(pid);
  if (argc > 1 && std::string_view(argv[1]) == "shells") {
    const int failed = start_by_shells(program);
    if (failed != 0) {
      return failed;
    }
  }
  print_held("vfork_exec", {{"in_starter", 336 * 9, 9}, {"in_new_program", 0, 0}});
}
