// SPDX-License-Identifier: Apache-2.0
// A library that comes and goes; built twice, under two names, so that one takes the place of the
// other. It holds what it allocates.
#include <cstdlib>

#ifndef PLUGIN_SITE
#error "which of the two"
#endif

extern "C" [[gnu::noinline, gnu::visibility("default")]] void* PLUGIN_SITE() {
  void* volatile block = std::malloc(208);
  return block;
}
extern "C" [[gnu::visibility("default")]] void* plugin_allocates() {
  void* volatile block = PLUGIN_SITE();
  return block;
}
