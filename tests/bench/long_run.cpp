// SPDX-License-Identifier: Apache-2.0
// usage: long_run PID TICKS
// Watches the tree of PID for so many ticks, without pauses, as `monitor -o` does: session, lines
// and recorder. Prints its own memory after a tenth of them and at the end, as JSON.
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/text.h"
#include "monitor/procfs/process_handle.h"
#include "monitor/procfs/process_source.h"
#include "monitor/session.h"
#include "recording/recorder.h"
#include "report/monitor_lines.h"

namespace tidemark {
namespace {

double rss_mib() {
  std::ifstream statm("/proc/self/statm");
  double size = 0;
  double resident = 0;
  statm >> size >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

// A clock that runs a hundred times as fast, so that slow cadences and budgets take part.
class FastClock final : public Clock {
 public:
  std::int64_t monotonic_ns() const override { return 100 * real_.monotonic_ns(); }
  std::int64_t wall_ns() const override { return real_.wall_ns(); }
  std::int64_t boot_ns() const override { return real_.boot_ns(); }

 private:
  SystemClock real_;
};

int run(pid_t pid, std::uint64_t ticks) {
  const auto source = monitor::make_procps_source();
  const auto root = monitor::process_key_of("/proc", pid);
  char folder[] = "/tmp/tidemark-bench-XXXXXX";
  if (!source || !root || ::mkdtemp(folder) == nullptr) {
    return 3;
  }
  const std::string file = std::string(folder) + "/run.tidemark";
  auto writer = recording::RunWriter::create(file);
  const FastClock clock;
  monitor::SessionOptions options;
  options.sampler.roots.keys = {*root};
  options.start_ns = clock.monotonic_ns();
  auto session = monitor::Session::start(options, **source, clock);
  if (!session || !writer) {
    return 3;
  }
  recording::Recorder recorder(*std::move(writer));
  if (!recorder.begin((*session)->describe())) {
    return 3;
  }
  report::TickLines lines;
  double early = 0;
  std::size_t printed = 0;
  for (std::uint64_t i = 0; i < ticks; ++i) {
    const Tick tick = (*session)->sample(clock.monotonic_ns(), {});
    printed += lines.line(tick, *root).size();
    (void)recorder.add(tick);
    for (const ProcessRecord& ended : (*session)->take_ended()) {
      (void)recorder.process_ended(ended);
    }
    if (i == ticks / 10) {
      early = rss_mib();
    }
  }
  const double end = rss_mib();
  const bool recorded = recorder.end(1.0).has_value();
  ::unlink(file.c_str());
  ::rmdir(folder);
  fmt::print("{{\"rss_early_mib\":{:.2f},\"rss_end_mib\":{:.2f},\"printed_bytes\":{}}}\n", early,
             end, printed);
  return recorded ? 0 : 3;
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) {
  const auto pid = argc == 3 ? tidemark::parse_number<pid_t>(argv[1]) : std::nullopt;
  const auto ticks = argc == 3 ? tidemark::parse_number<std::uint64_t>(argv[2]) : std::nullopt;
  if (!pid || !ticks) {
    fmt::print(stderr, "usage: long_run PID TICKS\n");
    return 2;
  }
  return tidemark::run(*pid, *ticks);
}
