// SPDX-License-Identifier: Apache-2.0
// Ends in the way that its argument names.
#include <csignal>
#include <string_view>

#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

VICTIM_SITE void* before_the_end() { return seen(std::malloc(320)); }

int main(int argc, char** argv) {
  for (int i = 0; i < 40; ++i) {
    before_the_end();
  }
  print_held("exit_paths", {{"before_the_end", 320 * 40, 40}});
  const std::string_view way = argc > 1 ? argv[1] : "return";
  if (way == "exit") {
    std::exit(5);
  }
  if (way == "_exit") {
    ::_exit(6);
  }
  if (way == "quick_exit") {
    std::quick_exit(7);
  }
  if (way == "abort") {
    std::abort();
  }
  if (way == "kill") {
    ::kill(::getpid(), SIGKILL);
  }
  if (way == "failed_exec") {
    ::execl("/nonexistent/program", "program", nullptr);
    before_the_end();
    std::exit(8);
  }
  if (way == "exec") {
    ::execl(argv[0], argv[0], "exit", nullptr);
  }
  return 0;
}
