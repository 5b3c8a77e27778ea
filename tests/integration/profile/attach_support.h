// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/text.h"
#include "profiler/inject/attach.h"
#include "tests/integration/monitor/command_output.h"
#include "tests/support/subprocess.h"
#include "tests/support/temp_tree.h"

// What tests of `tidemark profile --pid` have in common.
namespace tidemark::tests {

// Python that keeps a batch in every step, on line 5.
inline constexpr std::string_view kTraining =
    "import time\n"
    "kept = []\n"
    "def collate(step):\n"
    "    batch = bytearray(200_000)\n"
    "    kept.append(bytearray(300_000))\n"
    "    return batch\n"
    "print('ready', flush=True)\n"
    "for step in range(100_000):\n"
    "    collate(step)\n"
    "    time.sleep(0.005)\n";
inline constexpr int kTrainingLine = 5;

inline std::vector<std::string> attach_command(pid_t pid,
                                               const std::vector<std::string>& options = {},
                                               const std::string& duration = "2s") {
  std::vector<std::string> arguments = {
      "profile", "--pid",  std::to_string(pid), "--interval", "100ms", "--mode",
      "exact",   "--json", "--duration",        duration};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return arguments;
}

// Attaches for a moment; what the report has.
inline Output attach_to(pid_t pid, const std::vector<std::string>& options = {},
                        const std::string& duration = "2s") {
  return run_tool(attach_command(pid, options, duration));
}

inline nlohmann::json report_of(const Output& output) {
  nlohmann::json report = nlohmann::json::parse(output.out, nullptr, false);
  EXPECT_FALSE(report.is_discarded()) << output.out << output.err;
  return report;
}

// The line of the report that is in this place; null: there is none.
inline nlohmann::json line_at(const nlohmann::json& report, const std::string& file, int number) {
  for (const nlohmann::json& line : report.at("lines")) {
    if (line.at("file") == file && line.at("line") == number) {
      return line;
    }
  }
  return nullptr;
}

// Whose processes they are that grow.
inline std::set<pid_t> growing_pids(const nlohmann::json& report) {
  std::set<pid_t> pids;
  for (const nlohmann::json& line : report.at("lines")) {
    if (line.at("growth_bytes") > 0) {
      for (const nlohmann::json& pid : line.at("pids")) {
        pids.insert(pid.get<pid_t>());
      }
    }
  }
  return pids;
}

inline std::string problems_of(const nlohmann::json& report) {
  return report.at("coverage").at("problems").dump();
}

// How many places in the process lead to the tracer; 0 also where it is not in it.
inline std::size_t hooked_places(pid_t pid) {
  const auto found = inject::Attachment::find(pid);
  const auto count = found ? found->count_hooked() : Result<std::size_t>(std::size_t{0});
  EXPECT_TRUE(count) << count.error().what;
  return count ? *count : 0;
}

// The numbers in a text, as in "ready 12 13\n".
inline std::vector<pid_t> pids_in(const std::string& text) {
  std::vector<pid_t> pids;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = text.find_first_of("0123456789", at);
    if (begin == std::string::npos) {
      break;
    }
    at = std::min(text.find_first_not_of("0123456789", begin), text.size());
    pids.push_back(std::stoi(text.substr(begin, at - begin)));
  }
  return pids;
}

}  // namespace tidemark::tests
