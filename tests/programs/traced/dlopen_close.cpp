// SPDX-License-Identifier: Apache-2.0
// Opens two libraries by turns, each at the place where the other one was, and lets them allocate.
#include <dlfcn.h>

#include <string>

#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

int main(int, char** argv) {
  constexpr int kRounds = 60;
  const std::string program = argv[0];
  const std::string folder = program.substr(0, program.rfind('/') + 1);
  for (int i = 0; i < kRounds; ++i) {
    const std::string name =
        folder + (i % 2 == 0 ? "libtraced_plugin_a.so" : "libtraced_plugin_b.so");
    void* const plugin = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (plugin == nullptr) {
      return 1;
    }
    const auto allocates = reinterpret_cast<void* (*)()>(::dlsym(plugin, "plugin_allocates"));
    for (int n = 0; n < 10; ++n) {
      allocates();
    }
    ::dlclose(plugin);
  }
  print_held("dlopen_close", {{"plugin_a_site", 208 * 10 * kRounds / 2, 10 * kRounds / 2},
                              {"plugin_b_site", 208 * 10 * kRounds / 2, 10 * kRounds / 2}});
}
