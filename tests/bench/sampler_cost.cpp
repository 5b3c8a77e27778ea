// SPDX-License-Identifier: Apache-2.0
// usage: sampler_cost PID status|pss-ratio ROUNDS
//   status     prints the CPU time of one sample of the tree of PID as `monitor --pss off` takes it
//              (discovery, full split, roles, sums), in microseconds: the median of the rounds
//   pss-ratio  prints what a full pass of shares adds to such a sample, divided by the cost of
//              nothing but open, read and close of each smaps_rollup; interleaved, medians
#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/process_handle.h"
#include "monitor/procfs/process_source.h"
#include "monitor/sampler.h"

namespace tidemark {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::unique_ptr<monitor::Sampler> start(monitor::ProcessSource& source, const Clock& clock,
                                        const ProcessKey& root, monitor::PssMode mode) {
  monitor::SamplerOptions options;
  options.roots.keys = {root};
  options.pss = mode;
  auto sampler = monitor::Sampler::start(options, source, clock);
  if (!sampler) {
    fmt::print(stderr, "{}\n", sampler.error().what);
    std::exit(3);
  }
  return *std::move(sampler);
}

double sample_us(monitor::Sampler& sampler, double t_s) {
  const std::int64_t before = thread_cpu_ns();
  const Tick tick = sampler.sample(t_s);
  return static_cast<double>(thread_cpu_ns() - before) / 1e3;
}

double bare_us(const std::vector<ProcessKey>& keys) {
  std::vector<char> buffer(4096);
  const std::int64_t before = thread_cpu_ns();
  for (const ProcessKey& key : keys) {
    if (const auto fd = open_file(fmt::format("/proc/{}/smaps_rollup", key.pid), O_RDONLY); fd) {
      (void)pread_full(fd->get(), buffer);
    }
  }
  return static_cast<double>(thread_cpu_ns() - before) / 1e3;
}

int run(pid_t pid, std::string_view what, int rounds) {
  const auto source = monitor::make_procps_source();
  const auto root = monitor::process_key_of("/proc", pid);
  if (!source || !root) {
    fmt::print(stderr, "no process {}\n", pid);
    return 3;
  }
  const SystemClock clock;
  const auto cheap = start(**source, clock, *root, monitor::PssMode::kOff);
  const auto full = start(**source, clock, *root, monitor::PssMode::kAlways);
  cheap->sample(0);
  full->sample(0);
  std::vector<double> status;
  std::vector<double> pss;
  std::vector<double> bare;
  for (int i = 0; i < rounds; ++i) {
    status.push_back(sample_us(*cheap, i + 1.0));
    if (what == "pss-ratio") {
      pss.push_back(sample_us(*full, i + 1.0) - status.back());
      bare.push_back(bare_us(cheap->members()));
    }
  }
  fmt::print("{:.3f}\n", pss.empty() ? median(status) : median(pss) / median(bare));
  return 0;
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) {
  const auto pid = argc == 4 ? tidemark::parse_number<pid_t>(argv[1]) : std::nullopt;
  const auto rounds = argc == 4 ? tidemark::parse_number<int>(argv[3]) : std::nullopt;
  if (!pid || !rounds) {
    fmt::print(stderr, "usage: sampler_cost PID status|pss-ratio ROUNDS\n");
    return 2;
  }
  return tidemark::run(*pid, argv[2], *rounds);
}
