// SPDX-License-Identifier: Apache-2.0
// usage: series_cost parse|judge SAMPLES
// Prints the seconds of CPU that it takes to read a CSV file of that many samples, or to take them
// in and judge them (best of 3 rounds, because a neighbour can only make it slower).
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/check.h"
#include "common/io.h"
#include "common/text.h"
#include "recording/import/importers.h"
#include "tracker/curve/judge.h"

namespace {

constexpr int kRounds = 3;

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

template <typename Work>
double best_of_rounds(Work work) {
  double best = std::numeric_limits<double>::max();
  for (int round = 0; round < kRounds; ++round) {
    const double begin = cpu_seconds();
    work();
    best = std::min(best, cpu_seconds() - begin);
  }
  return best;
}

// Ten samples a second of a job that neither grows nor rests.
std::uint64_t bytes_at(std::uint64_t sample) {
  return 6'000'000'000U + (sample * 2654435761U) % 10'000'000U;
}

class NullSink final : public tidemark::RecordingSink {
 public:
  tidemark::Status begin(const tidemark::RunInfo& /*info*/) override { return tidemark::ok(); }
  tidemark::Status add(const tidemark::Tick& /*tick*/) override { return tidemark::ok(); }
  tidemark::Status process_ended(const tidemark::ProcessRecord& /*process*/) override {
    return tidemark::ok();
  }
  tidemark::Status end(double /*t_s*/) override { return tidemark::ok(); }
};

tidemark::Fd csv_file(std::uint64_t samples) {
  tidemark::Fd file(::memfd_create("series_cost", MFD_CLOEXEC));
  TIDEMARK_CHECK(file, "no memory file");
  std::string text = "time_s,rss_bytes\n";
  for (std::uint64_t i = 0; i < samples; ++i) {
    text += fmt::format("{}.{},{}\n", i / 10, i % 10, bytes_at(i));
    if (text.size() > (1U << 20U) || i + 1 == samples) {
      TIDEMARK_CHECK(tidemark::write_all(file.get(), text), "memory file is full");
      text.clear();
    }
  }
  return file;
}

double parse_seconds(std::uint64_t samples) {
  const tidemark::Fd file = csv_file(samples);
  return best_of_rounds([&] {
    tidemark::Fd input(::dup(file.get()));  // NOLINT(android-cloexec-dup): nothing is started
    TIDEMARK_CHECK(input && ::lseek(input.get(), 0, SEEK_SET) == 0, "cannot rewind");
    auto reader = tidemark::recording::open_csv({std::move(input), "samples"});
    TIDEMARK_CHECK(reader, "no header");
    NullSink sink;
    const auto summary = (*reader)->read(sink);
    TIDEMARK_CHECK(summary && summary->ticks == samples, "samples are missing");
  });
}

double judge_seconds(std::uint64_t samples) {
  return best_of_rounds([&] {
    tidemark::tracker::Series series;
    for (std::uint64_t i = 0; i < samples; ++i) {
      series.add(static_cast<double>(i) / 10.0, tidemark::tracker::kUnknown,
                 static_cast<double>(bytes_at(i)));
    }
    const auto reading = tidemark::tracker::judge(series, {});
    TIDEMARK_CHECK(reading.verdict == tidemark::tracker::Verdict::kStable, "it is stable");
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 3 ? argv[1] : "";
  const auto samples = tidemark::parse_number<std::uint64_t>(argc == 3 ? argv[2] : "");
  if ((what != "parse" && what != "judge") || !samples || *samples < 10) {
    std::fprintf(stderr, "usage: series_cost parse|judge SAMPLES\n");
    return 2;
  }
  std::printf("%.4f\n", what == "parse" ? parse_seconds(*samples) : judge_seconds(*samples));
  return 0;
}
