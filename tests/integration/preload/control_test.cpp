// SPDX-License-Identifier: Apache-2.0
// A tracer that is told another mode while its target runs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "profiler/reader/trace_file.h"
#include "tests/support/subprocess.h"
#include "tests/support/temp_tree.h"
#include "tests/support/traced_run.h"

namespace tidemark::tests {
namespace {

using reader::TraceFile;
using wire::Mode;

// Keeps 2000 blocks of 5000 bytes for every line that it reads.
constexpr char kScript[] =
    "import sys\nkept = []\nprint('ready', flush=True)\n"
    "for n, line in enumerate(sys.stdin):\n"
    "    kept.append([bytearray(5000) for i in range(2000)])\n"
    "    print('kept', n, flush=True)\n";

double live_bytes(TraceFile& file) {
  const auto snapshot = file.snapshot();
  EXPECT_TRUE(snapshot);
  double sum = 0.0;
  for (const auto& site : snapshot->sites) {
    sum += site.kind == AllocationKind::kHeap ? static_cast<double>(site.live_bytes()) : 0.0;
  }
  return sum;
}

TEST(Control, ADormantTracerIsWokenAndSentToSleepAgain) {
  if (::access("/usr/bin/python3", X_OK) != 0) {
    GTEST_SKIP() << "/usr/bin/python3 is not installed";
  }
  const TempTree folder;
  TraceAsk ask;
  ask.mode = Mode::kDormant;
  ask.directory = folder.path();
  Subprocess program(traced_command({"/usr/bin/python3", "-c", kScript}, ask));
  program.read_until("ready");
  const std::filesystem::directory_iterator files(folder.path());
  reader::TraceOpenOptions options;
  options.access = reader::TraceOpenOptions::Access::kControl;
  auto file = TraceFile::open(files->path().string(), options);
  ASSERT_TRUE(file);
  constexpr double kStep = 2000 * 5000;

  program.send("asleep\n");
  program.read_until("kept 0\n");
  EXPECT_EQ(live_bytes(*file), 0.0);

  ASSERT_TRUE(file->set_mode(TraceMode::kExact));
  program.send("awake\n");
  program.read_until("kept 1\n");
  EXPECT_NEAR(live_bytes(*file), kStep, 0.1 * kStep);

  ASSERT_TRUE(file->set_sample_every(20'000));
  ASSERT_TRUE(file->set_mode(TraceMode::kSampled));
  program.send("half awake\n");
  program.read_until("kept 2\n");
  EXPECT_NEAR(live_bytes(*file), 2 * kStep, 0.35 * kStep);

  ASSERT_TRUE(file->set_mode(TraceMode::kDormant));
  const double before = live_bytes(*file);
  program.send("asleep again\n");
  program.read_until("kept 3\n");
  EXPECT_NEAR(live_bytes(*file), before, 0.05 * kStep);

  program.close_input();
  EXPECT_EQ(program.wait(), 0) << program.errors();
}

}  // namespace
}  // namespace tidemark::tests
