// SPDX-License-Identifier: Apache-2.0
// As a reporter of crashes does: a handler on a small stack of its own forks and runs a program
// with an environment of its own. Ends with the status of that program.
#include <sys/wait.h>

#include <csignal>

#include "tests/programs/traced/held.h"

namespace {

constexpr std::size_t kSmall = 8192;
alignas(64) char g_stack[kSmall];

void report(int /*signal*/) {
  const pid_t child = ::fork();
  if (child == 0) {
    char name[] = "sh";
    char option[] = "-c";
    char script[] = "exit 7";
    char variable[] = "A=1";
    char* const arguments[] = {name, option, script, nullptr};
    char* const environment[] = {variable, nullptr};
    ::execve("/bin/sh", arguments, environment);
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
}

}  // namespace

int main() {
  stack_t small = {};
  small.ss_sp = g_stack;
  small.ss_size = kSmall;
  ::sigaltstack(&small, nullptr);
  struct sigaction action = {};
  action.sa_handler = report;
  action.sa_flags = SA_ONSTACK;
  ::sigaction(SIGSEGV, &action, nullptr);
  ::raise(SIGSEGV);
  return 98;
}
