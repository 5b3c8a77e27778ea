// SPDX-License-Identifier: Apache-2.0
// Prints what one mark costs, beside what the clock alone costs, in nanoseconds (best of 5 rounds,
// because a neighbour can only make it slower).
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>

#include "api/tidemark.h"
#include "common/clock.h"

namespace {

constexpr int kRounds = 5;
constexpr std::int64_t kCalls = 2'000'000;

template <typename Call>
double ns_per_call(Call call) {
  const tidemark::SystemClock clock;
  double best = std::numeric_limits<double>::max();
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t begin = clock.monotonic_ns();
    for (std::int64_t n = 0; n < kCalls; ++n) {
      call(n);
    }
    best = std::min(best, static_cast<double>(clock.monotonic_ns() - begin) / kCalls);
  }
  return best;
}

}  // namespace

int main() {
  const tidemark::SystemClock clock;
  const std::int64_t before_first = clock.monotonic_ns();
  tidemark_step(0);
  const std::int64_t first = clock.monotonic_ns() - before_first;
  timespec now{};
  std::printf("clock_gettime        %6.1f ns\n",
              ns_per_call([&](std::int64_t) { ::clock_gettime(CLOCK_MONOTONIC, &now); }));
  std::printf("tidemark_step        %6.1f ns\n",
              ns_per_call([](std::int64_t n) { tidemark_step(n); }));
  std::printf("tidemark_phase_begin %6.1f ns\n",
              ns_per_call([](std::int64_t) { tidemark_phase_begin("eval"); }));
  std::printf("first call           %6.1f us\n", static_cast<double>(first) / 1e3);
  return 0;
}
