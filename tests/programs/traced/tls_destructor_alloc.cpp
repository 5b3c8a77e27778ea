// SPDX-License-Identifier: Apache-2.0
// Allocates and frees while a thread is taken down: in destructors of thread_local and of keys.
#include <pthread.h>

#include <thread>

#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

VICTIM_SITE void* in_destructor() { return seen(std::malloc(80)); }
VICTIM_SITE void* in_key_destructor() { return seen(std::malloc(112)); }

struct AtEnd {
  AtEnd() : mine(std::malloc(48)) {}
  ~AtEnd() {
    std::free(mine);
    in_destructor();
  }
  void* mine;
};

void destroy_key(void* value) {
  std::free(value);
  in_key_destructor();
}

int main() {
  constexpr int kThreads = 300;
  pthread_key_t key{};
  pthread_key_create(&key, destroy_key);
  for (int i = 0; i < kThreads; ++i) {
    std::thread([key] {
      thread_local AtEnd at_end;
      seen(at_end.mine);
      pthread_setspecific(key, std::malloc(32));
    }).join();
  }
  print_held("tls_destructor_alloc", {{"in_destructor", 80 * kThreads, kThreads},
                                      {"in_key_destructor", 112 * kThreads, kThreads}});
}
