// SPDX-License-Identifier: Apache-2.0
// Opens and closes libraries in an order by chance, each at whatever place is free, and allocates
// by call stacks of its own all the while. usage: plugin_shuffle TIMES PATH...
#include <dlfcn.h>

#include <vector>

#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

VICTIM_SITE void of_the_program(int depth) {
  if (depth > 0) {
    of_the_program(depth - 1);
    asm volatile("" ::: "memory");
  } else {
    std::free(seen(std::malloc(20)));
  }
}

int main(int count, char** arguments) {
  const long times = std::strtol(arguments[1], nullptr, 10);
  const int libraries = count - 2;
  std::vector<void*> open(static_cast<std::size_t>(libraries), nullptr);
  unsigned chance = 1;
  for (long i = 0; i < times; ++i) {
    chance = chance * 1103515245 + 12345;
    const std::size_t which = (chance >> 16U) % open.size();
    if (open[which] != nullptr) {
      ::dlclose(open[which]);
      open[which] = nullptr;
    } else {
      open[which] = ::dlopen(arguments[2 + which], RTLD_NOW | RTLD_LOCAL);
      if (open[which] == nullptr) {
        return 1;
      }
      std::free(reinterpret_cast<void* (*)()>(::dlsym(open[which], "plugin_allocates"))());
    }
    for (int depth = 0; depth < 30; ++depth) {
      of_the_program(depth);
    }
  }
  print_held("plugin_shuffle", {{"plugin_a_site", 0, 0}, {"of_the_program", 0, 0}});
}
