// SPDX-License-Identifier: Apache-2.0
// The tracer must not change by which library exceptions are thrown: libunwind has functions of the
// same names as libgcc_s, and an extension that came to it would end in std::terminate. Nor may
// loading libunwind change how a program begins.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/paths.h"
#include "tests/support/temp_tree.h"
#include "tests/support/traced_run.h"

namespace tidemark::tests {
namespace {

using testing::HasSubstr;
using testing::Not;

class UnwinderBinding : public testing::TestWithParam<bool> {};

TEST_P(UnwinderBinding, AnExtensionOfPythonThrowsByLibgcc) {
  if (::access("/usr/bin/python3", X_OK) != 0) {
    GTEST_SKIP() << "/usr/bin/python3 is not installed";
  }
  const TempTree folder;
  TraceAsk ask;
  ask.libunwind = GetParam();
  ask.environment = {"LD_DEBUG=bindings", "LD_DEBUG_OUTPUT=" + folder.path("bindings")};
  const std::string script = "import ctypes; print(ctypes.CDLL('" +
                             victim_path("libtraced_thrower.so") + "').throw_and_catch(1000))";

  const TracedRun run = run_traced({"/usr/bin/python3", "-c", script}, ask);

  ASSERT_EQ(run.status, 0) << run.errors;
  EXPECT_EQ(run.output, "1000\n");
  int bound = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    std::ifstream lines(entry.path());
    for (std::string line; std::getline(lines, line);) {
      const bool own =
          line.find("binding file /lib/x86_64-linux-gnu/libunwind") != std::string::npos;
      if (!own && line.find("`_Unwind_RaiseException'") != std::string::npos) {
        ++bound;
        EXPECT_THAT(line, HasSubstr("to /lib/x86_64-linux-gnu/libgcc_s.so.1"));
        EXPECT_THAT(line, Not(HasSubstr("libunwind")));
      }
    }
  }
  EXPECT_GE(bound, 1);
}

// Python loads the C++ runtime for its extensions alone: what is preloaded does not find it by a
// search for the next function.
TEST(Operators, AnExtensionOfPythonHearsThatMemoryRanOut) {
  if (::access("/usr/bin/python3", X_OK) != 0) {
    GTEST_SKIP() << "/usr/bin/python3 is not installed";
  }
  TraceAsk ask;
  ask.also_preload = {operators_path()};
  const std::string script = "import ctypes; print(ctypes.CDLL('" +
                             victim_path("libtraced_thrower.so") + "').ask_for_too_much())";

  const TracedRun run = run_traced({"/usr/bin/python3", "-c", script}, ask);

  EXPECT_EQ(run.status, 0) << run.errors;
  EXPECT_EQ(run.output, "5\n");
}

// libunwind is loaded before libc has begun, and must not let it begin without its environment.
TEST_P(UnwinderBinding, AProgramHasItsEnvironmentAndItsName) {
  TraceAsk ask;
  ask.libunwind = GetParam();
  ask.environment = {"TIDE=high"};

  const TracedRun run = run_traced({"/bin/sh", "-c", "echo $TIDE; cat /nowhere"}, ask);

  EXPECT_EQ(run.status, 1) << run.errors;
  EXPECT_EQ(run.output, "high\n");
  EXPECT_THAT(run.errors, HasSubstr("cat: /nowhere: No such file"));
}

INSTANTIATE_TEST_SUITE_P(, UnwinderBinding, testing::Bool(),
                         [](const auto& named) { return named.param ? "Libunwind" : "Own"; });

}  // namespace
}  // namespace tidemark::tests
