// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "recording/open.h"
#include "tests/support/memory_sink.h"
#include "tests/support/temp_tree.h"

namespace tidemark::recording {

// What an import yields: the run, or the error.
struct Imported {
  tests::MemorySink run;
  ReadSummary summary;
  std::string error;  // empty: none
  Errc code = Errc::kIo;
};

inline Imported import_file(const std::string& path) {
  Imported imported;
  auto reader = open_recording(path);
  if (!reader) {
    imported.error = reader.error().what;
    imported.code = reader.error().code;
    return imported;
  }
  auto summary = (*reader)->read(imported.run);
  if (summary) {
    imported.summary = *summary;
  } else {
    imported.error = summary.error().what;
    imported.code = summary.error().code;
  }
  return imported;
}

// The text as a file named "log", whose path does not appear in errors.
inline Imported import_text(std::string_view text) {
  const tests::TempTree dir;
  dir.write("log", text);
  Imported imported = import_file(dir.path("log"));
  for (std::size_t at = imported.error.find(dir.path() + "/"); at != std::string::npos;
       at = imported.error.find(dir.path() + "/")) {
    imported.error.erase(at, dir.path().size() + 1);
  }
  return imported;
}

inline std::vector<double> times(const tests::MemorySink& run) {
  std::vector<double> all;
  for (const Tick& tick : run.ticks) {
    all.push_back(tick.t_s);
  }
  return all;
}

// RSS of the first process of each tick, in MiB; -1: unknown.
inline std::vector<double> rss_mib(const tests::MemorySink& run) {
  std::vector<double> all;
  for (const Tick& tick : run.ticks) {
    const auto& rss = tick.processes.at(0).rss_bytes;
    all.push_back(rss ? static_cast<double>(*rss) / 1048576.0 : -1.0);
  }
  return all;
}

}  // namespace tidemark::recording
