// SPDX-License-Identifier: Apache-2.0
// usage: shm_cost ROUNDS
//   prints the CPU time of a pass over /dev/shm and all processes of the machine, in milliseconds:
//   of the first one, and of one that knows the processes; medians, interleaved
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/text.h"
#include "monitor/procfs/shm_pass.h"

namespace tidemark {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double pass_ms(monitor::HolderSearch& search) {
  const std::int64_t before = thread_cpu_ns();
  monitor::ShmPass pass("/dev/shm", "/proc", ::geteuid(), nullptr, &search);
  while (!pass.step()) {
  }
  return static_cast<double>(thread_cpu_ns() - before) / 1e6;
}

int run(int rounds) {
  std::vector<double> first;
  std::vector<double> later;
  for (int i = 0; i < rounds; ++i) {
    monitor::HolderSearch search("/proc");
    first.push_back(pass_ms(search));
    later.push_back(pass_ms(search));
  }
  fmt::print("{:.2f} {:.2f}\n", median(first), median(later));
  return 0;
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) {
  const auto rounds = tidemark::parse_number<int>(argc == 2 ? argv[1] : "");
  return rounds && *rounds > 0 ? tidemark::run(*rounds) : 2;
}
