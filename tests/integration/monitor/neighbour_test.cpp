// SPDX-License-Identifier: Apache-2.0
// Beside another training job of the machine, which leaks in /dev/shm.
#include <signal.h>
#include <unistd.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/monitor/command_output.h"
#include "tests/support/subprocess.h"

namespace tidemark {
namespace {

using nlohmann::json;
using tests::json_lines;
using tests::of_kind;
using tests::Output;
using tests::run_tool;
using tests::Subprocess;

class Neighbour {
 public:
  Neighbour() { process_.read_until("ready"); }
  ~Neighbour() {
    process_.signal(SIGTERM);  // it removes its segments
    process_.wait();
  }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

 private:
  Subprocess process_{{"/usr/bin/python3", TIDEMARK_SOURCE_DIR "/tests/programs/train_decoy.py",
                       std::to_string(::getpid())}};
};

TEST(NeighbourOfAJob, KeepsItsSegmentsToItself) {
  const Neighbour neighbour;

  const Output output =
      run_tool({"monitor", "--json", "--interval", "100ms", "--", "/bin/sleep", "3"});

  const auto ticks = of_kind(json_lines(output.out), "tick");
  ASSERT_GT(ticks.size(), 3U) << output.err;
  const json& segments = ticks.back().at("system").at("dev_shm_segments");
  EXPECT_TRUE(segments.is_number() && segments > 3) << segments;
  for (const json& tick : ticks) {
    const json& unheld = tick.at("system").value("dev_shm_unheld_bytes", json());
    EXPECT_TRUE(unheld.is_null() || unheld == 0) << unheld;
  }
}

}  // namespace
}  // namespace tidemark
