// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/paths.h"
#include "tests/support/subprocess.h"

// The interpreters of this machine, and what a profile of a script has to show.
namespace tidemark::tests {

struct Python {
  std::string path;
  int minor = 0;        // 3.minor
  std::string library;  // libpython3.X.so; "": it has none
};

// Of the distribution, in /usr/local, of pyenv and of conda; each once.
inline std::vector<Python> pythons() {
  namespace fs = std::filesystem;
  const char* const home = std::getenv("HOME");
  std::set<std::string> candidates;
  std::vector<fs::path> folders{"/usr/bin", "/usr/local/bin", "/opt/conda/bin"};
  std::error_code error;
  for (const fs::path& parent :
       {fs::path("/opt"), fs::path(home == nullptr ? "/" : home) / ".pyenv/versions"}) {
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
inline constexpr std::size_t kWaysToLeak = 10;

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

}  // namespace tidemark::tests
