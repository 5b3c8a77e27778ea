// SPDX-License-Identifier: Apache-2.0
// Baselines that somebody has edited or merged: what is read is written and read again as it was.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "check/baseline.h"
#include "common/check.h"

namespace {

using namespace tidemark;  // NOLINT(google-build-using-namespace)

void check_figures(const check::BaselineEntry& entry, const check::BaselineEntry& again) {
  TIDEMARK_CHECK(check::class_differences(entry.machine, again.machine).empty(), "another machine");
  TIDEMARK_CHECK(entry.runs.size() == again.runs.size(), "runs are lost");
  for (std::size_t i = 0; i < entry.runs.size(); ++i) {
    const tracker::BaselineRun& run = entry.runs[i].figures;
    const tracker::BaselineRun& same = again.runs[i].figures;
    TIDEMARK_CHECK(std::round(run.plateau_bytes) == same.plateau_bytes &&
                       std::round(run.peak_bytes) == same.peak_bytes,
                   "sizes differ by more than a byte");
    TIDEMARK_CHECK(run.rate_bytes_per_s == same.rate_bytes_per_s &&
                       run.rate_bytes_per_step == same.rate_bytes_per_step,
                   "rates differ");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto baseline = check::parse_baseline({reinterpret_cast<const char*>(data), size});
  if (!baseline) {
    TIDEMARK_CHECK(!baseline.error().what.empty(), "an error without words");
    return 0;
  }

  const auto again = check::parse_baseline(check::baseline_text(*baseline));

  TIDEMARK_CHECK(again, "it cannot be read again");
  TIDEMARK_CHECK(baseline->checks.size() == again->checks.size(), "checks are lost");
  for (const auto& [name, entries] : baseline->checks) {
    const auto same = again->checks.find(name);
    TIDEMARK_CHECK(same != again->checks.end() && entries.size() == same->second.size(),
                   "entries are lost");
    for (std::size_t i = 0; i < entries.size(); ++i) {
      check_figures(entries[i], same->second[i]);
      (void)check::machine_text(entries[i].machine);
      TIDEMARK_CHECK(entries[i].runs.empty() ||
                         check::find_entry(*baseline, name, entries[i].machine) != nullptr,
                     "an entry that nobody finds");
    }
  }
  return 0;
}
