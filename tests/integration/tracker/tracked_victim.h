// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/integration/monitor/command_output.h"
#include "tests/support/temp_tree.h"

// `tidemark track -- VICTIM`: what it says, beside the truth that the victim prints.
namespace tidemark::tests {

struct TrackedVictim {
  Output live;
  nlohmann::json truth;
  nlohmann::json verdict;
  Output again;  // `track FILE` on the recording of the live run
  nlohmann::json verdict_again;

  // The first pattern of this kind; null when there is none.
  nlohmann::json pattern(const std::string& kind) const {
    for (const nlohmann::json& one : verdict.at("patterns")) {
      if (one.at("kind") == kind) {
        return one;
      }
    }
    return nullptr;
  }
};

// With --json the output of a command goes to stderr.
inline nlohmann::json truth_in(const std::string& text) {
  const std::size_t at = text.find("{\"victim\"");
  if (at == std::string::npos) {
    ADD_FAILURE() << "the victim did not print its truth: " << text;
    return nlohmann::json::object();
  }
  return nlohmann::json::parse(text.substr(at, text.find('\n', at) - at));
}

struct TrackCommand {
  std::vector<std::string> victim;  // name and options
  std::vector<std::string> judge;   // --warmup and the like: for both runs of the tool
  std::vector<std::string> watch;   // for the live run only
};

inline TrackedVictim track_victim(const TrackCommand& command) {
  const TempTree folder;
  const std::string file = folder.path("run.tidemark");
  std::vector<std::string> live = {"track", "--json", "--interval", "50ms", "-o", file};
  live.insert(live.end(), command.judge.begin(), command.judge.end());
  live.insert(live.end(), command.watch.begin(), command.watch.end());
  live.emplace_back("--");
  live.push_back(victim_path(command.victim[0]));
  live.insert(live.end(), command.victim.begin() + 1, command.victim.end());
  std::vector<std::string> again = {"track", "--json", file};
  again.insert(again.end(), command.judge.begin(), command.judge.end());

  TrackedVictim result;
  result.live = run_tool(live);
  result.again = run_tool(again);
  result.truth = truth_in(result.live.err);
  result.verdict = nlohmann::json::parse(result.live.out, nullptr, false);
  result.verdict_again = nlohmann::json::parse(result.again.out, nullptr, false);
  EXPECT_TRUE(result.verdict.is_object()) << result.live.out << result.live.err;
  EXPECT_TRUE(result.verdict_again.is_object()) << result.again.out << result.again.err;
  return result;
}

}  // namespace tidemark::tests
