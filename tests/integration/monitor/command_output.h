// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/paths.h"
#include "tests/support/subprocess.h"

// Running the tool as a user does, beside a tree that looks like a training job.
namespace tidemark::tests {

inline std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(nlohmann::json::parse(text.substr(at, end - at)));
    at = end + 1;
  }
  return lines;
}

inline std::vector<nlohmann::json> of_kind(const std::vector<nlohmann::json>& lines,
                                           const std::string& kind) {
  std::vector<nlohmann::json> result;
  for (const nlohmann::json& line : lines) {
    if (line.at("kind") == kind) {
      result.push_back(line);
    }
  }
  return result;
}

// A wrapper, a trainer, 20 compile workers and 4 DataLoader workers, ready.
class TrainingTree {
 public:
  explicit TrainingTree(std::vector<std::string> options = {})
      : process_(command(std::move(options))) {
    truth_ = nlohmann::json::parse(process_.read_until("\n"));
  }
  pid_t root() const { return process_.pid(); }
  const nlohmann::json& truth() const { return truth_; }
  std::set<pid_t> pids() const {
    std::set<pid_t> pids{truth_.at("trainer").get<pid_t>()};
    if (truth_.at("wrapper").is_number()) {
      pids.insert(truth_.at("wrapper").get<pid_t>());
    }
    for (const char* role : {"compile_worker", "dataloader_worker"}) {
      for (const nlohmann::json& pid : truth_.at(role)) {
        pids.insert(pid.get<pid_t>());
      }
    }
    return pids;
  }

 private:
  static std::vector<std::string> command(std::vector<std::string> options) {
    std::vector<std::string> argv{victim_path("training_tree"),
                                  "--wrapper",
                                  "uv",
                                  "--workers",
                                  "19",
                                  "--dataloaders",
                                  "4",
                                  "--worker-mb",
                                  "2",
                                  "--trainer-mb",
                                  "60",
                                  "--seconds",
                                  "60"};
    argv.insert(argv.end(), options.begin(), options.end());
    return argv;
  }

  Subprocess process_;
  nlohmann::json truth_;
};

struct Output {
  int exit_code;
  std::string out;
  std::string err;
};

inline Output run_tool(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), tool_path());
  Subprocess tool(arguments);
  tool.close_input();
  const int exit_code = tool.wait();
  return {exit_code, tool.output(), tool.errors()};
}

}  // namespace tidemark::tests
