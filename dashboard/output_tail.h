// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::dashboard {

// The last lines of what a program has written, fit for a screen: progress bars as they stand,
// colours and cursor movements taken out, the rest escaped.
std::vector<std::string> last_lines(std::string_view bytes, std::size_t most);

// Looks at the end of a file that grows.
class OutputTail {
 public:
  explicit OutputTail(std::string path) : path_(std::move(path)) {}
  // True when there is something new.
  bool refresh();
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  static constexpr std::size_t kMostLines = 8;

  std::string path_;
  std::int64_t size_ = -1;
  std::vector<std::string> lines_;
};

}  // namespace tidemark::dashboard
