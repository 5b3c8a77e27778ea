// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/integration/monitor/command_output.h"
#include "tests/support/temp_tree.h"

// `tidemark check` on a small program.
namespace tidemark::tests {

// 64 MiB and no more; 100 steps in two seconds.
inline std::vector<std::string> steady() {
  return {victim_path("leak_linear"), "--leak-mb", "0", "--count", "100", "--steps"};
}
// 512 KiB more at each step after the tenth.
inline std::vector<std::string> leaking() {
  return {victim_path("leak_linear"), "--flat-steps", "10", "--count", "100", "--steps"};
}

inline Output run_check(std::vector<std::string> options, const std::vector<std::string>& command) {
  options.insert(options.begin(), {"check", "--interval", "50ms"});
  options.emplace_back("--");
  options.insert(options.end(), command.begin(), command.end());
  return run_tool(options);
}

// What it writes with --json.
inline nlohmann::json checked(std::vector<std::string> options,
                              const std::vector<std::string>& command) {
  options.insert(options.end(), {"--json", "-"});
  const Output output = run_check(std::move(options), command);
  nlohmann::json answer = nlohmann::json::parse(output.out, nullptr, false);
  EXPECT_TRUE(answer.is_object()) << output.out << output.err;
  EXPECT_EQ(output.exit_code, answer.is_object() ? answer.at("exit_code").get<int>() : -1)
      << output.err;
  return answer;
}

inline const nlohmann::json& check_of(const nlohmann::json& answer) {
  return answer.at("checks").at(0);
}

inline const nlohmann::json& budget(const nlohmann::json& answer, const std::string& name) {
  static const nlohmann::json kNone = nlohmann::json::object();
  for (const nlohmann::json& row : check_of(answer).at("budgets")) {
    if (row.at("budget") == name) {
      return row;
    }
  }
  ADD_FAILURE() << "no budget " << name << " in " << answer.dump(1);
  return kNone;
}

inline std::string content_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Those that `leaves_behind` has told of.
inline void remove_segments_in(const std::string& text) {
  for (std::size_t at = 0; (at = text.find("segment /", at)) != std::string::npos; at += 8) {
    ::shm_unlink(text.substr(at + 8, text.find('\n', at) - at - 8).c_str());
  }
}

}  // namespace tidemark::tests
