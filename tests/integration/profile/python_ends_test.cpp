// SPDX-License-Identifier: Apache-2.0
// Interpreters that end or are unloaded while the process runs on.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/monitor/command_output.h"
#include "tests/integration/profile/python_matrix.h"

namespace tidemark {
namespace {

using testing::HasSubstr;
using tests::Output;
using tests::Python;
using tests::run_tool;

Output profile(const std::vector<std::string>& command) {
  std::vector<std::string> arguments = {"profile", "--mode", "exact", "--interval", "50ms", "--"};
  arguments.insert(arguments.end(), command.begin(), command.end());
  return run_tool(arguments);
}

// It frees the states of threads that are outside of it, which allocate on.
TEST(PythonThatEnds, LeavesThreadsInNativeCodeAlone) {
  const std::vector<Python> found = tests::pythons();
  if (found.empty()) {
    GTEST_SKIP() << "no Python 3.9 or later on this machine";
  }
  for (const Python& python : found) {
    const Output output = profile({python.path, tests::script_path("ending_threads.py"),
                                   tests::victim_path("native_calls.so")});

    EXPECT_EQ(output.exit_code, 0) << python.path << '\n' << output.err;
    EXPECT_THAT(output.out, HasSubstr("ends")) << python.path;
  }
}

// Loaded and unloaded twice.
TEST(PythonThatIsUnloaded, IsNotCalledAnyMore) {
  std::vector<Python> found = tests::pythons();
  std::erase_if(found, [](const Python& python) { return python.library.empty(); });
  if (found.empty()) {
    GTEST_SKIP() << "no Python 3.9 or later with a shared library on this machine";
  }
  bool was_unloaded = false;
  for (const Python& python : found) {
    const std::vector<std::string> command = {tests::victim_path("python_embedder"),
                                              "keep = [bytearray(1000) for i in range(1000)]",
                                              python.library, python.library};
    tests::Subprocess plain(command);
    plain.close_input();
    if (plain.wait() != 0) {
      continue;  // such a library cannot be loaded twice
    }

    const Output output = profile(command);

    EXPECT_EQ(output.exit_code, 0) << python.library << '\n' << output.out << output.err;
    EXPECT_EQ(output.out, plain.output());
    was_unloaded = was_unloaded || plain.output().find("loaded 0") != std::string::npos;
  }
  EXPECT_TRUE(was_unloaded);  // else this proves nothing
}

}  // namespace
}  // namespace tidemark
