// SPDX-License-Identifier: Apache-2.0
// Threads that open and close libraries, allocate and fork, all at once. Ends when it is told to; a
// deadlock anywhere keeps it from that. Arguments: seconds, and forks that there must be at least.
#include <dlfcn.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

namespace {

std::atomic<bool> g_stop = false;
std::atomic<int> g_forks = 0;
std::atomic<int> g_wrong = 0;
std::atomic<long> g_opened = 0;
std::string g_folder;

void allocate(unsigned seed) {
  void* blocks[64] = {};
  for (unsigned i = 0; i < 500; ++i) {
    void*& block = blocks[(seed + i * 7) % 64];
    std::free(block);
    block = seen(std::malloc(16 + (seed * i) % 5000));
  }
  for (void* const block : blocks) {
    std::free(block);
  }
}

void open_and_close(unsigned seed) {
  const char* const names[] = {"libtraced_plugin_a.so", "libtraced_plugin_b.so",
                               "libtraced_thrower.so"};
  void* const library = ::dlopen((g_folder + names[seed % 3]).c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    ++g_wrong;
    return;
  }
  if (void* const allocates = ::dlsym(library, "plugin_allocates")) {
    std::free(reinterpret_cast<void* (*)()>(allocates)());
  } else if (void* const throws = ::dlsym(library, "throw_and_catch")) {
    g_wrong += reinterpret_cast<int (*)(int)>(throws)(2) == 2 ? 0 : 1;
  }
  ::dlclose(library);
  ++g_opened;
}

void fork_once(unsigned seed) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    allocate(seed);
    ::_exit(23);
  }
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 23) {
    ++g_wrong;
  }
  ++g_forks;
}

}  // namespace

int main(int argc, char** argv) {
  const int seconds = argc > 1 ? std::atoi(argv[1]) : 1;
  const int forks = argc > 2 ? std::atoi(argv[2]) : 0;
  const std::string program = argv[0];
  g_folder = program.substr(0, program.rfind('/') + 1);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t) {
    threads.emplace_back([t] {
      for (unsigned i = t; !g_stop; i += 8) {
        allocate(i);
        open_and_close(i);
        if (i % 3 == 0) {
          fork_once(i);
        }
      }
    });
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (std::chrono::steady_clock::now() < end || g_forks < forks) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  g_stop = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::printf("forks %d opened %ld wrong %d\n", g_forks.load(), g_opened.load(), g_wrong.load());
  return g_wrong == 0 ? 0 : 1;
}
