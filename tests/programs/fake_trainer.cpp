// SPDX-License-Identifier: Apache-2.0
// Stands for `tidemark-harness train` in tests of the job server: steps without training.
//   fake_trainer BEHAVIOUR --progress-fd N
// steps: five steps, then the end; unstopped: the same, SIGTERM comes too late and it says so;
// forever: a step every 5 ms, SIGTERM ends it in order; stubborn: the same, deaf to SIGTERM; error:
// two steps, a message, exit 3; orphan: leaves a child behind that would live for ever, having told
// its pid; memory: 64 MiB for some time.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<bool> g_stop = false;

void step(std::FILE* progress, long n) {
  std::fprintf(progress, "{\"step\":%ld,\"loss\":%.2f}\n", n, 1.0 / static_cast<double>(n));
  std::fflush(progress);
  std::printf("Step %ld\n", n);
  std::fflush(stdout);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

void step_forever(std::FILE* progress) {
  for (long n = 1; !g_stop; ++n) {
    step(progress, n);
  }
  std::printf("saved a checkpoint\n");
}

void leave_an_orphan() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  std::printf("orphan %d\n", static_cast<int>(child));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 || std::strcmp(argv[2], "--progress-fd") != 0) {
    return 2;
  }
  const std::string behaviour = argv[1];
  std::FILE* progress = ::fdopen(std::atoi(argv[3]), "w");
  if (progress == nullptr) {
    return 2;
  }
  ::signal(SIGPIPE, SIG_IGN);  // as the real one: a server that is gone does not end it
  ::signal(
      SIGTERM, behaviour == "stubborn" ? SIG_IGN : [](int) { g_stop = true; });
  if (behaviour == "forever" || behaviour == "stubborn") {
    step_forever(progress);
    return 0;
  }
  if (behaviour == "orphan") {
    leave_an_orphan();
  }
  std::vector<char> held;
  if (behaviour == "memory") {
    held.assign(64U << 20U, 'x');
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  for (long n = 1; n <= (behaviour == "error" ? 2 : 5); ++n) {
    step(progress, n);
  }
  if (behaviour == "unstopped") {
    while (!g_stop) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::fprintf(progress, "{\"event\":\"end\",\"stopped\":false}\n");
    std::fflush(progress);
  }
  if (behaviour == "error") {
    std::fprintf(stderr, "error: no images\nhint: add some\n\n");
    return 3;
  }
  return held.empty() || held.back() == 'x' ? 0 : 1;
}
