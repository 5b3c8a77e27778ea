// SPDX-License-Identifier: Apache-2.0
// A job's log in which steps are recognised: the first byte says in how long pieces it arrives.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "common/check.h"
#include "monitor/markers/step_log.h"

namespace {

using tidemark::MarkerRecord;

std::vector<MarkerRecord> steps_of(std::string_view log, std::size_t piece_bytes) {
  using namespace tidemark::monitor;
  StepScanner scanner(StepRecognizer(std::make_shared<StepLineChoice>()));
  std::vector<MarkerRecord> found;
  while (!log.empty()) {
    const std::string_view piece = log.substr(0, piece_bytes);
    TIDEMARK_CHECK(scanner.feed(piece, 0.0, found) == piece.size(), "all is taken");
    log.remove_prefix(piece.size());
  }
  scanner.end(0.0, found);
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string_view log(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto whole = steps_of(log, size);
  const auto in_pieces = steps_of(log, std::size_t{data[0]} + 1);
  TIDEMARK_CHECK(std::equal(whole.begin(), whole.end(), in_pieces.begin(), in_pieces.end(),
                            [](const auto& a, const auto& b) { return a.value == b.value; }),
                 "how the log arrives does not matter");
  TIDEMARK_CHECK(whole.empty() || whole.front().value >= 0, "steps are counted from 0");
  TIDEMARK_CHECK(std::is_sorted(whole.begin(), whole.end(),
                                [](const auto& a, const auto& b) { return a.value < b.value; }),
                 "steps do not go back");
  return 0;
}
