// SPDX-License-Identifier: Apache-2.0
// Counts the signals that it gets. Prints "ready", then "got NAME" for each one; at the end of its
// input, or after a line of it, the totals: "totals INT=1 TERM=0 ...", and exits with status 7.
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace {

struct Counted {
  int number;
  const char* name;
};
constexpr std::array kSignals = {
    Counted{SIGINT, "INT"},   Counted{SIGTERM, "TERM"}, Counted{SIGHUP, "HUP"},
    Counted{SIGQUIT, "QUIT"}, Counted{SIGUSR1, "USR1"}, Counted{SIGUSR2, "USR2"},
};
std::array<volatile sig_atomic_t, kSignals.size()> g_counts{};

void on_signal(int number) {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (kSignals[i].number == number) {
      g_counts[i] = g_counts[i] + 1;
      std::array<char, 16> line{};
      std::strcpy(line.data(), "got ");
      std::strcat(line.data(), kSignals[i].name);
      std::strcat(line.data(), "\n");
      [[maybe_unused]] const auto written = ::write(1, line.data(), std::strlen(line.data()));
    }
  }
}

}  // namespace

int main() {
  for (const Counted& counted : kSignals) {
    struct sigaction action {};
    action.sa_handler = on_signal;
    ::sigaction(counted.number, &action, nullptr);
  }
  [[maybe_unused]] const auto written = ::write(1, "ready\n", 6);
  char byte = 0;
  while (::read(0, &byte, 1) < 0 && errno == EINTR) {
  }
  std::printf("totals");
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    std::printf(" %s=%d", kSignals[i].name, static_cast<int>(g_counts[i]));
  }
  std::printf("\n");
  return 7;
}
