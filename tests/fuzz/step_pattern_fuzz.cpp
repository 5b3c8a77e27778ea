// SPDX-License-Identifier: Apache-2.0
// A pattern of `--step-regex`, and behind its first line the log that it searches.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/check.h"
#include "monitor/markers/step_log.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidemark;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = text.find('\n');
  const auto pattern = monitor::StepPattern::compile(text.substr(0, end));
  if (!pattern || end == std::string_view::npos) {
    return 0;
  }
  monitor::StepScanner scanner(*pattern);
  std::vector<MarkerRecord> found;
  const std::string_view log = text.substr(end + 1);
  TIDEMARK_CHECK(scanner.feed(log, 0.0, found) == log.size(), "all is taken");
  scanner.end(1.0, found);
  return 0;
}
