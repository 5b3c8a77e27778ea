// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/records.h"
#include "recording/run_writer.h"
#include "recording/sqlite.h"
#include "tests/support/sample_run.h"
#include "tests/support/temp_tree.h"

namespace tidemark::tests {

// A run file that a test writes, and damages.
class RunFileTest : public testing::Test {
 protected:
  void record(const std::vector<Tick>& ticks) {
    auto writer = recording::RunWriter::create(path_);
    ASSERT_TRUE(writer && (*writer)->begin(full_run_info()));
    for (const Tick& tick : ticks) {
      ASSERT_TRUE((*writer)->add(tick));
    }
    ASSERT_TRUE((*writer)->end(ticks.back().t_s));
  }
  void execute(const std::string& sql) {
    auto database = recording::Database::open(path_, recording::Database::Mode::kReadWrite);
    ASSERT_TRUE(database);
    const Status status = database->execute(sql);
    ASSERT_TRUE(status) << status.error().what;
  }

  TempTree dir_;
  std::string path_ = dir_.path("run.tidemark");
};

}  // namespace tidemark::tests
