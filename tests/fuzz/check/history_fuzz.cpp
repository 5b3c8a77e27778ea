// SPDX-License-Identifier: Apache-2.0
// Histories that went through a spreadsheet: what is read is written and read again as it was.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "check/history.h"
#include "common/check.h"

namespace {

using namespace tidemark;  // NOLINT(google-build-using-namespace)

// As far as the decimals of the file go.
bool is_about(const std::optional<double>& a, const std::optional<double>& b, double decimals) {
  return a.has_value() == b.has_value() && (!a || std::abs(*a - *b) <= decimals);
}

void check_same(const check::HistoryRow& a, const check::HistoryRow& b) {
  TIDEMARK_CHECK(a.time == b.time && a.commit == b.commit && a.check == b.check &&
                     a.machine == b.machine && a.result == b.result,
                 "texts differ");
  TIDEMARK_CHECK(is_about(a.figures.rate_bytes_per_s, b.figures.rate_bytes_per_s, 0.001) &&
                     is_about(a.figures.rate_bytes_per_step, b.figures.rate_bytes_per_step, 0.001),
                 "rates differ");
  TIDEMARK_CHECK(is_about(a.figures.plateau_bytes, b.figures.plateau_bytes, 1.0) &&
                     is_about(a.figures.peak_bytes, b.figures.peak_bytes, 1.0) &&
                     is_about(a.seconds, b.seconds, 0.1),
                 "figures differ");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto rows = check::parse_history({reinterpret_cast<const char*>(data), size});
  if (!rows) {
    TIDEMARK_CHECK(!rows.error().what.empty(), "an error without words");
    return 0;
  }

  const auto again = check::parse_history(check::history_file_text(*rows));

  TIDEMARK_CHECK(again && again->size() == rows->size(), "rows are lost");
  for (std::size_t i = 0; i < rows->size(); ++i) {
    check_same((*rows)[i], (*again)[i]);
  }
  if (!rows->empty()) {
    const check::HistoryRow& row = rows->back();
    for (const check::HistoryChange& change :
         check::history_changes(*rows, row.check, row.machine)) {
      TIDEMARK_CHECK(change.change.index < rows->size(), "a change after the last row");
    }
  }
  return 0;
}
