// SPDX-License-Identifier: Apache-2.0
// Prints for how long a process stands still while a copy of it is taken, and while that is
// removed, and what it costs, for one process after the other.
//   frozen_cost PID TIMES
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "profiler/heap/frozen_copy.h"

namespace {

double share_of(std::vector<double>& values, double share) {
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  return values.empty() ? 0 : values[static_cast<std::size_t>(last * share)];
}

void print(const char* what, std::vector<double>& seconds) {
  std::printf("\"%s_ms\": {\"p50\": %.2f, \"p99\": %.2f, \"max\": %.2f}, ", what,
              share_of(seconds, 0.5) * 1e3, share_of(seconds, 0.99) * 1e3,
              share_of(seconds, 1) * 1e3);
}

}  // namespace

int main(int count, char** arguments) {
  using tidemark::heap::FrozenCopy;
  if (count != 3) {
    std::fprintf(stderr, "usage: frozen_cost PID TIMES\n");
    return 2;
  }
  const auto pid = static_cast<pid_t>(std::atol(arguments[1]));
  const long times = std::atol(arguments[2]);
  std::vector<double> taking;
  std::vector<double> removing;
  FrozenCopy::Cost cost;
  long errors = 0;
  for (long i = 0; i < times; ++i) {
    auto copy = FrozenCopy::take(pid);
    if (!copy) {
      std::fprintf(stderr, "%s\n", copy.error().what.c_str());
      ++errors;
      continue;
    }
    const double taken_s = copy->paused_s();
    std::this_thread::sleep_for(std::chrono::milliseconds(5 + i % 20));
    if (i + 1 == times) {
      cost = copy->cost();
    }
    if (const auto released = copy->release(); !released) {
      std::fprintf(stderr, "%s\n", released.error().what.c_str());
      ++errors;
    }
    taking.push_back(taken_s);
    removing.push_back(copy->paused_s() - taken_s);
  }
  std::printf("{");
  print("take", taking);
  print("remove", removing);
  std::printf("\"page_table_kib\": %llu, \"copied_kib\": %llu, \"copies\": %zu, \"errors\": %ld}\n",
              static_cast<unsigned long long>(cost.page_table_bytes >> 10U),
              static_cast<unsigned long long>(cost.copied_bytes.value_or(0) >> 10U), taking.size(),
              errors);
  return errors == 0 ? 0 : 1;
}
