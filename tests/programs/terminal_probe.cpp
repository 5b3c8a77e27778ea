// SPDX-License-Identifier: Apache-2.0
// Takes the terminal as the dashboard does, and then runs out of stack.
//
// usage: terminal_probe main|thread
#include <cstdio>
#include <string_view>
#include <thread>

#include "common/quiet_thread.h"
#include "dashboard/terminal.h"

namespace {

// Kept from becoming a loop by what it does after the call.
[[gnu::noinline]] int descend(volatile int* above) {
  volatile int here[256] = {*above};
  here[1] = here[0] > 0 ? descend(here) : 0;
  return here[1] + 1;
}

int overflow() {
  volatile int start = 1;
  return descend(&start);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    return 2;
  }
  const auto terminal = tidemark::dashboard::Terminal::open();
  if (!terminal) {
    std::fprintf(stderr, "terminal_probe: %s\n", terminal.error().what.c_str());
    return 3;
  }
  if (std::string_view(argv[1]) == "main") {
    return overflow();
  }
  tidemark::start_quiet_thread([] { (void)overflow(); }).join();
  return 0;
}
