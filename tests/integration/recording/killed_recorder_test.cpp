// SPDX-License-Identifier: Apache-2.0
// A recorder that is killed at any moment leaves a file that opens and holds complete ticks: at
// least all those that it had called safe.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <string>
#include <string_view>
#include <thread>

#include "common/fd.h"
#include "common/io.h"
#include "common/text.h"
#include "recording/files.h"
#include "recording/open.h"
#include "tests/support/memory_sink.h"
#include "tests/support/numbered_ticks.h"
#include "tests/support/record_text.h"
#include "tests/support/temp_tree.h"

namespace tidemark::recording {
namespace {

using tests::numbered_tick;
using tests::text_of;

// The victim, its standard output in our hands.
class Recorder {
 public:
  Recorder(const std::string& path, int ticks) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    output_.reset(ends[0]);
    const Fd write_end(ends[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
    std::string program = TIDEMARK_BINARY_DIR "/tests/programs/record_forever";
    std::string file = path;
    std::string count = std::to_string(ticks);
    char* argv[] = {program.data(), file.data(), count.data(), nullptr};
    EXPECT_EQ(::posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
  }

  // Kills it and returns how many ticks it had called safe.
  std::uint64_t kill_and_count() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    std::string_view text = *(said_ = read_to_end(output_.get()));
    text = text.substr(0, text.rfind('\n'));
    const std::string_view last = text.substr(text.rfind('\n') + 1);
    return parse_number<std::uint64_t>(last).value_or(0);
  }
  // Blocks until it has called the first tick safe, or has ended.
  void wait_for_first_tick() {
    char byte = 0;
    EXPECT_TRUE(read_some(output_.get(), {&byte, 1}));
  }

 private:
  pid_t pid_ = -1;
  Fd output_;
  Result<std::string> said_ = std::string();
};

void expect_complete_ticks(const tests::MemorySink& run) {
  for (std::uint64_t n = 0; n < run.ticks.size(); ++n) {
    ASSERT_EQ(text_of(run.ticks[n]), text_of(numbered_tick(n)));
  }
}

TEST(KilledRecorder, LeavesEveryTickThatItCalledSafe) {
  constexpr int kKills = 50;
  const tests::TempTree dir;
  std::mt19937 random(20240301);  // NOLINT(cert-msc51-cpp): the same kills every time
  int files = 0;
  for (int i = 0; i < kKills; ++i) {
    SCOPED_TRACE(i);
    const std::string path = dir.path("run" + std::to_string(i));
    // Endless ones die in the middle; short ones around their end; every fifth at its very start.
    Recorder recorder(path, i % 2 == 0 ? 0 : 30);
    if (i % 5 != 0) {
      recorder.wait_for_first_tick();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
    const std::uint64_t safe = recorder.kill_and_count();
    if (!file_exists(path)) {
      EXPECT_EQ(safe, 0U);
      continue;
    }
    ++files;
    auto reader = open_recording(path);
    ASSERT_TRUE(reader) << reader.error().what;
    tests::MemorySink run;
    const auto summary = (*reader)->read(run);
    ASSERT_TRUE(summary) << summary.error().what;
    EXPECT_GE(run.ticks.size(), safe);
    expect_complete_ticks(run);
  }
  EXPECT_GE(files, kKills * 4 / 5);
}

}  // namespace
}  // namespace tidemark::recording
