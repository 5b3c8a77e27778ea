// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/paths.h"
#include "tests/support/subprocess.h"
#include "tests/support/temp_tree.h"

// The interpreters of this machine, and what a profile of a script has to show.
namespace tidemark::tests {

struct Python {
  std::string path;
  int minor = 0;        // 3.minor
  std::string library;  // libpython3.X.so; "": it has none
};

// Of the distribution, in /usr/local, of pyenv, conda and uv; each once.
inline std::vector<Python> pythons() {
  namespace fs = std::filesystem;
  const char* const variable = std::getenv("HOME");
  const fs::path home = variable == nullptr ? "/" : variable;
  std::set<std::string> candidates;
  std::vector<fs::path> folders{"/usr/bin", "/usr/local/bin", "/opt/conda/bin",
                                home / "miniconda3/bin"};
  std::error_code error;
  for (const fs::path& parent : {fs::path("/opt"), home / ".pyenv/versions",
                                 home / "miniconda3/envs", home / ".local/share/uv/python"}) {
    for (const auto& entry : fs::directory_iterator(parent, error)) {
      folders.push_back(entry.path() / "bin");
    }
  }
  for (const fs::path& folder : folders) {
    for (int minor = 9; minor <= 15; ++minor) {
      const fs::path found = fs::canonical(folder / ("python3." + std::to_string(minor)), error);
      if (!error) {
        candidates.insert(found);
      }
    }
  }
  std::vector<Python> found;
  for (const std::string& path : candidates) {
    Subprocess asked({path, "-c",
                      "import os, sys, sysconfig\n"
                      "var = sysconfig.get_config_var\n"
                      "so = os.path.join(var('LIBDIR') or '', var('INSTSONAME') or '')\n"
                      "print(sys.version_info[1])\n"
                      "print(so if '.so' in so and os.path.exists(so) else '')\n"});
    asked.close_input();
    if (asked.wait() == 0) {
      const std::string text = asked.output();
      const std::size_t end = text.find('\n');
      found.push_back(
          {path, std::stoi(text), text.substr(end + 1, text.find('\n', end + 1) - end - 1)});
    }
  }
  return found;
}

inline std::string script_path(const std::string& name) {
  return TIDEMARK_SOURCE_DIR "/tests/programs/python/" + name;
}

// The line of a script that ends with "# leaks".
inline int leaking_line(const std::string& script) {
  std::ifstream file(script_path(script));
  int number = 0;
  for (std::string text; std::getline(file, text);) {
    ++number;
    if (text.ends_with("# leaks")) {
      return number;
    }
  }
  return 0;
}

// In leaking_lines.py, without that of numpy.
inline constexpr std::size_t kWaysToLeak = 11;

// The command under the tracer, until at least so many lines grow; the report as JSON.
using ProfileCommand = nlohmann::json (*)(const std::vector<std::string>& command,
                                          std::size_t growing_lines);

// The frames of Python in a site, innermost first.
inline std::vector<std::string> python_frames(const nlohmann::json& site) {
  std::vector<std::string> frames;
  for (const nlohmann::json& frame : site.at("frames")) {
    if (frame.at("kind") == "python") {
      frames.push_back(frame.at("function"));
    }
  }
  return frames;
}

inline std::string call_of(const std::string& way) {
  return way == "in_c_extension"     ? "keep_block"
         : way == "in_native_thread" ? "keep_block_in_thread"
                                     : "bytearray";
}

// Of the first `most` lines of the report that at this place; nullptr: it is not among them.
inline const nlohmann::json* find_line(const nlohmann::json& report, const nlohmann::json& place,
                                       std::size_t most) {
  const nlohmann::json& lines = report.at("lines");
  for (std::size_t i = 0; i < std::min(most, lines.size()); ++i) {
    if (lines.at(i).at("file") == place.at("file") && lines.at(i).at("line") == place.at("line")) {
      return &lines.at(i);
    }
  }
  return nullptr;
}

// Every way to leak has its line before all others, with what it leaks. Not in the order of rates:
// on a machine that stands still now and then, the step at which something was seen is not sure.
inline void expect_leaking_lines(const std::string& python, ProfileCommand profile_command) {
  SCOPED_TRACE(python);
  const TempTree folder;
  const nlohmann::json report =
      profile_command({python, script_path("leaking_lines.py"), folder.path("truth.json"),
                       victim_path("native_calls.so")},
                      kWaysToLeak);
  std::ifstream file(folder.path("truth.json"));
  const nlohmann::json truth = nlohmann::json::parse(file);

  const nlohmann::json* const first = find_line(report, truth.at(0), truth.size());
  ASSERT_NE(first, nullptr) << truth.at(0).dump() << report.at("lines").dump(1);
  for (const nlohmann::json& way : truth) {
    const nlohmann::json* const line = find_line(report, way, truth.size());
    ASSERT_NE(line, nullptr) << way.dump() << report.at("lines").dump(1);
    EXPECT_EQ(line->at("own"), true) << line->dump(1);
    EXPECT_EQ(line->at("language"), "python");
    if (way.at("name") != "in_numpy") {  // its library may have symbols, or none
      EXPECT_EQ(line->at("call"), call_of(way.at("name")));
    }
    EXPECT_GT(line->at("growth_bytes_per_step"), 0.0) << line->dump(1);
    // All ways have leaked in the same steps, give or take the last one.
    const double expected =
        way.at("bytes_per_step").get<double>() / truth.at(0).at("bytes_per_step").get<double>();
    const double found =
        line->at("live_bytes").get<double>() / first->at("live_bytes").get<double>();
    EXPECT_NEAR(found, expected, 0.2 * expected) << line->dump(1);
  }
  const nlohmann::json& sites = report.at("sites");
  EXPECT_TRUE(std::any_of(sites.begin(), sites.end(), [](const nlohmann::json& site) {
    const auto frames = python_frames(site);
    return std::count(frames.begin(), frames.end(), "descend") == 200;
  })) << "no stack has all frames of the recursion";
}

inline bool has_torch() {
  Subprocess asked({"/usr/bin/python3", "-c", "import torch"});
  asked.close_input();
  return asked.wait() == 0;
}

// The collator of torch_loader.py, in the trainer or in its workers.
inline void expect_collator_first(const nlohmann::json& report, std::size_t workers) {
  ASSERT_FALSE(report.at("lines").empty()) << report.dump(1);
  const nlohmann::json& line = report.at("lines").at(0);
  EXPECT_EQ(line.at("file"), script_path("torch_loader.py")) << line.dump(1);
  EXPECT_EQ(line.at("function"), "collate") << line.dump(1);
  EXPECT_EQ(line.at("line"), leaking_line("torch_loader.py")) << line.dump(1);
  EXPECT_GT(line.at("growth_bytes"), 0) << line.dump(1);
  if (workers > 0) {
    EXPECT_EQ(line.at("role"), "dataloader_worker");
    EXPECT_EQ(line.at("pids").size(), workers);
  }
}

}  // namespace tidemark::tests
