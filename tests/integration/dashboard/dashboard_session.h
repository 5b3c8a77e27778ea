// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <string>

#include <gtest/gtest.h>

#include "tests/integration/monitor/command_output.h"
#include "tests/support/tmux_session.h"

namespace tidemark::tests {

// The real program on a real terminal (tmux), over a tree of processes.
class DashboardSession : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_tmux_because(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
  }

  static TmuxSession::Options options(int width = 120, int height = 40) {
    return {width, height, {"LC_ALL=C.UTF-8", "NO_COLOR="}};
  }
  static std::string tool() { return "'" + tool_path() + "'"; }
  static std::string watch(const TrainingTree& tree, const std::string& more = "") {
    return tool() + " monitor --interval 200ms --pid " + std::to_string(tree.root()) + " " + more;
  }
  static void send(const TmuxSession& session, int signal) {
    const pid_t pid = session.pid_of("tidemark");
    ASSERT_GT(pid, 0);  // 0 would be ourselves
    ::kill(pid, signal);
  }
  // The lines of a run file that name an event.
  static std::string exported(const std::string& path) {
    Subprocess process({tool_path(), "export", path, "--format", "jsonl"});
    process.wait();
    return process.output();
  }
};

}  // namespace tidemark::tests
