// SPDX-License-Identifier: Apache-2.0
#include "tests/support/golden.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>

#include "common/text.h"

namespace tidemark::tests {

std::string difference_from_golden(const std::string& name, const std::string& text) {
  const std::string path = TIDEMARK_GOLDEN_DIR "/" + name;
  std::ifstream file(path);
  const std::string golden{std::istreambuf_iterator<char>(file), {}};
  if (golden == text) {
    return "";
  }
  // Tests have one thread here. NOLINTNEXTLINE(concurrency-mt-unsafe)
  if (std::getenv("TIDEMARK_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << text;
    return "rewritten, read the difference: " + path;
  }
  std::string_view expected_rest = golden;
  std::string_view actual_rest = text;
  for (int line = 1;; ++line) {
    const auto expected = next_line(expected_rest);
    const auto actual = next_line(actual_rest);
    if (expected != actual || !expected) {
      return path + ":" + std::to_string(line) +
             "\n  golden: " + std::string(expected.value_or("(end)")) +
             "\n  now:    " + std::string(actual.value_or("(end)"));
    }
  }
}

}  // namespace tidemark::tests
