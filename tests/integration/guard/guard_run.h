// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/subprocess.h"

// `tidemark guard` as a user runs it.
namespace tidemark::tests {

inline std::vector<std::string> guarded_job(std::vector<std::string> options) {
  options.insert(options.begin(), {victim_path("guarded_job"), "--steps", "--life-s", "60"});
  return options;
}

inline std::vector<std::string> guard(std::vector<std::string> options,
                                      const std::vector<std::string>& command = {}) {
  options.insert(options.begin(), {tool_path(), "guard"});
  if (!command.empty()) {
    options.emplace_back("--");
    options.insert(options.end(), command.begin(), command.end());
  }
  return options;
}

struct Guarded {
  int exit_code = 0;
  std::string out;
  std::string log;
};

inline Guarded run_guard(const std::vector<std::string>& argv) {
  Subprocess process(argv);
  process.close_input();
  const int exit_code = process.wait();
  return {exit_code, process.output(), process.errors()};
}

inline std::size_t count_of(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    ++count;
  }
  return count;
}

inline std::string content_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace tidemark::tests
