// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/io.h"
#include "tests/integration/monitor/command_output.h"
#include "tests/integration/profile/python_matrix.h"
#include "tests/support/subprocess.h"
#include "tests/support/temp_tree.h"

// What tests of `tidemark rule-out` have in common.
namespace tidemark::tests {

inline constexpr const char* kDebianPython = "/usr/bin/python3";

// 120 MiB of garbage in cycles, in a job that has switched the collector off.
inline constexpr const char* kCycles = R"(
import gc, sys, time
gc.disable()
class Node:
    pass
for i in range(120):
    node = Node()
    node.itself = node
    node.data = bytearray(b"x" * (1 << 20))
del node
print("ready", flush=True)
for line in sys.stdin:
    print("enabled" if gc.isenabled() else "disabled", gc.collect(), flush=True)
)";

// 120 MiB that a list holds.
inline constexpr const char* kLiveList = R"(
import sys
kept = [bytearray(b"x" * (1 << 20)) for _ in range(120)]
print("ready", flush=True)
sys.stdin.read()
)";

// A script that runs, and has said that it is ready.
class Script {
 public:
  explicit Script(const std::string& text, const std::string& python = kDebianPython,
                  const std::vector<std::string>& before = {})
      : process_(command(folder_, text, python, before)) {
    EXPECT_NE(process_.read_until("ready\n").find("ready"), std::string::npos) << process_.errors();
  }
  pid_t pid() const { return process_.pid(); }
  Subprocess& process() { return process_; }
  // What it answers to a line.
  std::string ask(const std::string& line, const std::string& until) {
    process_.send(line + "\n");
    return process_.read_until(until);
  }

 private:
  static std::vector<std::string> command(const TempTree& folder, const std::string& text,
                                          const std::string& python,
                                          const std::vector<std::string>& before) {
    folder.write("script.py", text);
    std::vector<std::string> all = before;
    all.insert(all.end(), {python, folder.path("script.py")});
    return all;
  }

  TempTree folder_;
  Subprocess process_;
};

// Its JSON, with short pauses.
inline nlohmann::json rule_out(pid_t pid, std::vector<std::string> options = {},
                               int wanted_code = 0) {
  std::vector<std::string> arguments{"rule-out", "--pid",    std::to_string(pid),
                                     "--json",   "--settle", "300ms"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const Output output = run_tool(arguments);
  EXPECT_EQ(output.exit_code, wanted_code) << output.out << output.err;
  nlohmann::json report = nlohmann::json::parse(output.out, nullptr, false);
  EXPECT_FALSE(report.is_discarded()) << output.out << output.err;
  return report;
}

// Null: it was not done.
inline nlohmann::json intervention(const nlohmann::json& report, const std::string& kind) {
  for (const nlohmann::json& each : report.at("processes").at(0).at("interventions")) {
    if (each.at("kind") == kind) {
      return each;
    }
  }
  return nullptr;
}

inline std::string outcome_of(const nlohmann::json& report, const std::string& kind) {
  const nlohmann::json found = intervention(report, kind);
  return found.is_null() ? "not done" : found.at("outcome").get<std::string>();
}

inline double mib_of(const nlohmann::json& bytes) {
  return bytes.is_number() ? bytes.get<double>() / (1 << 20) : -1.0;
}

inline std::size_t count_in(const std::string& folder) {
  std::error_code error;
  std::size_t count = 0;
  for (auto entry = std::filesystem::directory_iterator(folder, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    ++count;
  }
  return count;
}
inline std::size_t threads_in(pid_t pid) { return count_in(fmt::format("/proc/{}/task", pid)); }
inline std::size_t descriptors_in(pid_t pid) { return count_in(fmt::format("/proc/{}/fd", pid)); }
inline std::size_t mappings_in(pid_t pid) {
  const auto maps = read_file(fmt::format("/proc/{}/maps", pid));
  return maps ? static_cast<std::size_t>(std::count(maps->begin(), maps->end(), '\n')) : 0;
}
inline std::uint64_t anonymous_bytes(pid_t pid) {
  const auto status = read_file(fmt::format("/proc/{}/status", pid));
  const std::size_t at = status ? status->find("RssAnon:") : std::string::npos;
  return at == std::string::npos ? 0 : std::stoull(status->substr(at + 8)) << 10U;
}
// At most half a minute.
inline bool wait_until(const std::function<bool()>& is_so) {
  for (int i = 0; i < 3000 && !is_so(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return is_so();
}
inline bool has_probe(pid_t pid) {
  const auto maps = read_file(fmt::format("/proc/{}/maps", pid));
  return maps && maps->find("tidemark_probe") != std::string::npos;
}

}  // namespace tidemark::tests
