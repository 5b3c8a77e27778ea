// SPDX-License-Identifier: Apache-2.0
// usage: loader_storm SECONDS
// Threads that load and unload libraries, threads that allocate at every depth, and a main thread
// that forks children which allocate as well. Ends with 0 when all of them came to their end.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

std::atomic<bool> g_done = false;

void allocate_nested(int depth) {
  void* volatile block = std::malloc(static_cast<std::size_t>(depth) * 16 + 1);
  if (depth > 0) {
    allocate_nested(depth - 1);
  }
  std::free(block);
}

void load_and_unload(const char* name) {
  while (!g_done) {
    void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    allocate_nested(3);
    if (library != nullptr) {
      dlclose(library);
    }
  }
}

bool fork_one() {
  const pid_t child = fork();
  if (child == 0) {
    allocate_nested(20);
    _exit(0);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::seconds(argc > 1 ? std::atoi(argv[1]) : 1);
  std::vector<std::thread> threads;
  for (const char* const name : {"libsqlite3.so.0", "libz.so.1", "libfmt.so.9", "libresolv.so.2"}) {
    threads.emplace_back(load_and_unload, name);
    threads.emplace_back([] {
      while (!g_done) {
        allocate_nested(60);
      }
    });
  }
  bool good = true;
  while (good && std::chrono::steady_clock::now() < end) {
    good = fork_one();
  }
  g_done = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  return good ? 0 : 1;
}
