// SPDX-License-Identifier: Apache-2.0
// However a run ends, its truth can be read and nothing of it stays behind.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/io.h"
#include "common/text.h"
#include "tests/integration/harness/harness_run.h"

namespace tidemark::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Everything that could stay behind: a pool, forked workers, segments and their manager. Progress
// goes where the log goes, so that a test sees phases begin.
const std::vector<std::string> kEverything = {"compile-workers+dataloader-cow+spikes+leak",
                                              "--workers",
                                              "2",
                                              "--worker-mb",
                                              "4",
                                              "--mb",
                                              "8",
                                              "--cause",
                                              "shm",
                                              "--from-step",
                                              "0",
                                              "--mb-per-step",
                                              "0.2",
                                              "--steps",
                                              "400",
                                              "--eval-every",
                                              "7",
                                              "--step-time",
                                              "10ms",
                                              "--progress-fd",
                                              "1"};

// A part of a run: it begins with these words in the output, and lasts about so long.
struct Part {
  const char* begins;
  int milliseconds;
};
constexpr Part kStart{"", 800};  // most of it loads libraries
constexpr Part kLoading{R"({"event":"start"})", 500};
constexpr Part kTraining{"Training on", 200};
constexpr Part kEvaluation{R"({"phase":"eval"})", 25};
constexpr Part kCheckpoint{R"({"phase":"checkpoint"})", 15};

bool trains_in(const Part& part) { return &part != &kStart && &part != &kLoading; }

// Another one in every run of the tests; TIDEMARK_TEST_SEED repeats one.
unsigned test_seed() {
  const char* const wanted = std::getenv("TIDEMARK_TEST_SEED");
  return wanted != nullptr ? static_cast<unsigned>(std::stoul(wanted)) : std::random_device{}();
}

std::vector<pid_t> children() {
  const std::string self = std::to_string(::getpid());
  const auto text = read_file("/proc/self/task/" + self + "/children");
  std::vector<pid_t> pids;
  for (const std::string_view word : split(text ? *text : "", ' ')) {
    if (const auto pid = parse_number<pid_t>(word)) {
      pids.push_back(*pid);
    }
  }
  return pids;
}

// Ends runs at moments that nobody chose. The test inherits every process that a run leaves behind,
// whether the truth knows of it or not.
class HarnessEnding : public ::testing::TestWithParam<const Part*> {
 protected:
  HarnessEnding() {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    words_.insert(words_.end(), {"--checkpoint", folder_.path("model.pt")});
  }
  ~HarnessEnding() override { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }

  // Signals it somewhere in the part; the exit code.
  int end(HarnessRun& run, int signal) {
    const unsigned seed = test_seed();
    std::minstd_rand random(seed);
    const std::chrono::microseconds delay(
        std::uniform_int_distribution<>(0, 1000 * GetParam()->milliseconds)(random));
    const std::string moment = "TIDEMARK_TEST_SEED=" + std::to_string(seed) + ": " +
                               std::to_string(delay.count()) + " us after '" + GetParam()->begins +
                               "'";
    RecordProperty("moment", moment);
    std::cout << moment << std::endl;
    run.process().read_until(GetParam()->begins);
    std::this_thread::sleep_for(delay);
    run.process().signal(signal);
    return run.finish();
  }

  // Waits, for at most a few seconds, until all that the run left behind has ended; what has not.
  static std::vector<pid_t> strays() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (std::chrono::steady_clock::now() < deadline) {
      const pid_t ended = ::waitpid(-1, nullptr, WNOHANG);
      if (ended < 0 && errno == ECHILD) {
        return {};
      }
      if (ended == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    }
    return children();
  }

  TempTree folder_;
  std::vector<std::string> words_ = kEverything;
};

TEST_P(HarnessEnding, BySigtermCompletesTheTruth) {
  HarnessRun run(words_);
  const pid_t trainer = run.process().pid();

  const int code = end(run, SIGTERM);

  const auto truth = run.truth();
  if (GetParam() == &kStart && code == 128 + SIGTERM) {
    EXPECT_TRUE(truth.is_null()) << "it had not begun";
  } else {
    EXPECT_EQ(code, 0) << run.process().errors();
    EXPECT_EQ(truth["complete"], true);
    EXPECT_GT(truth["processes"].size(), 6U);
    EXPECT_TRUE(std::filesystem::exists(folder_.path("model.pt")));
  }
  EXPECT_THAT(strays(), IsEmpty());
  EXPECT_THAT(segments_of(trainer), IsEmpty());
}

TEST_P(HarnessEnding, BySigkillLeavesATruthAndNothingElse) {
  HarnessRun run(words_);
  const pid_t trainer = run.process().pid();

  EXPECT_EQ(end(run, SIGKILL), 128 + SIGKILL);

  const auto truth = run.truth();
  if (trains_in(*GetParam())) {
    EXPECT_EQ(truth["complete"], false);
    EXPECT_EQ(truth["class"], "leak");
    EXPECT_GT(truth["processes"].size(), 6U);
  } else {
    EXPECT_TRUE(truth.is_null() || truth.is_object()) << "never a part";
  }
  EXPECT_THAT(strays(), IsEmpty());
  EXPECT_THAT(segments_of(trainer), IsEmpty());
}

// The trainer hears of it by a SIGTERM.
TEST_P(HarnessEnding, ByTheDeathOfTheWrapperCompletesTheTruth) {
  words_.emplace_back("--wrapper");
  HarnessRun run(words_);
  const pid_t wrapper = run.process().pid();

  EXPECT_EQ(end(run, SIGKILL), 128 + SIGKILL);

  EXPECT_THAT(strays(), IsEmpty());
  const auto truth = run.truth();
  if (truth.is_null()) {
    EXPECT_EQ(GetParam(), &kStart) << "it had begun";
    return;
  }
  EXPECT_EQ(truth["complete"], true);
  EXPECT_EQ(truth["wrapper_pid"], wrapper);
  EXPECT_EQ(run.pids("wrapper"), std::vector{wrapper});
  EXPECT_THAT(segments_of(run.pids("trainer").at(0)), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Parts, HarnessEnding,
                         ::testing::Values(&kStart, &kLoading, &kTraining, &kEvaluation,
                                           &kCheckpoint));

// Ctrl-C, timeout(1) and systemd signal more than the trainer.
TEST(HarnessSegments, GoAlsoWhenTheWholeGroupIsSignalled) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGKILL}) {
    Subprocess run({"setsid", harness_path(), "train", "leak", "--cause", "shm", "--from-step", "0",
                    "--mb-per-step", "0.1", "--steps", "100000", "--step-time", "5ms"});
    run.read_until("Step 10 ");
    ASSERT_THAT(segments_of(run.pid()), Not(IsEmpty()));

    ASSERT_EQ(::killpg(run.pid(), signal), 0);

    run.wait();
    EXPECT_THAT(segments_left_by(run.pid()), IsEmpty()) << signal;
  }
}

TEST(HarnessSegments, AreNotMadeByALeakOfNothing) {
  HarnessRun run({"leak", "--cause", "shm", "--keep-shm", "--mb", "0", "--from-step", "0",
                  "--steps", "5", "--step-time", "1ms"});

  EXPECT_EQ(run.finish(), 0) << run.process().errors();
  EXPECT_THAT(segments_of(run.process().pid()), IsEmpty());
}

TEST(HarnessLeakLines, AreInTheTruthAsSoonAsTheLeakBegins) {
  HarnessRun run({"leak", "--cause", "collator", "--from-step", "5", "--mb-per-step", "0.2",
                  "--steps", "100000", "--step-time", "10ms", "--log-every", "1"});
  run.process().read_until("Step 6 ");

  run.process().signal(SIGKILL);

  EXPECT_EQ(run.finish(), 128 + SIGKILL);
  const auto truth = run.truth();
  EXPECT_EQ(truth["complete"], false);
  EXPECT_THAT(truth["allocating_line"], HasSubstr("trainer_harness/collator.cpp:"));
  EXPECT_THAT(truth["retaining_line"], HasSubstr("trainer_harness/collator.cpp:"));
}

TEST(HarnessLeakLines, AreUnknownInARunThatEndsBeforeTheLeak) {
  for (const char* cause : {"collator", "native"}) {
    HarnessRun run({"leak", "--cause", cause, "--from-step", "50000", "--mb-per-step", "0.2",
                    "--steps", "100000", "--step-time", "1ms", "--log-every", "1"});
    run.process().read_until("Step 5 ");

    run.process().signal(SIGTERM);

    EXPECT_EQ(run.finish(), 0) << run.process().errors();
    const auto truth = run.truth();
    EXPECT_EQ(truth["complete"], true);
    EXPECT_EQ(truth["class"], "stable");
    EXPECT_TRUE(truth["patterns"].empty());
    EXPECT_TRUE(truth["allocating_line"].is_null());
    EXPECT_TRUE(truth["retaining_line"].is_null());
  }
}

TEST(HarnessStart, RefusesADeviceThatIsNotThere) {
  HarnessRun run({"steady", "--device", "cuda", "--steps", "1", "--mb", "1"});

  const int code = run.finish();

  if (code == 0) {
    GTEST_SKIP() << "there is a CUDA device";
  }
  EXPECT_EQ(code, 3);
  EXPECT_THAT(run.process().errors(), HasSubstr("no CUDA device; try --device cpu"));
}

TEST(HarnessStart, RefusesWhatItDoesNotKnow) {
  HarnessRun run({"leek"});

  EXPECT_EQ(run.finish(), 2);
  EXPECT_THAT(run.process().errors(), HasSubstr("SCENARIO needs to be one of steady,"));
  EXPECT_THAT(run.process().errors(),
              HasSubstr("not 'leek'\nhint: see tidemark-harness train --help"));
}

TEST(HarnessStart, ExplainsItselfWhereverItIsAsked) {
  Subprocess run({harness_path(), "train", "leak", "--cause", "shm", "--help"});

  EXPECT_EQ(run.wait(), 0);
  EXPECT_THAT(run.output(), HasSubstr("Usage: tidemark-harness train"));
}

TEST(HarnessStart, SaysWhyTheTruthCannotBeWritten) {
  Subprocess run({harness_path(), "train", "steady", "--steps", "1", "--truth", "/nowhere/t.json"});

  EXPECT_EQ(run.wait(), 3);
  EXPECT_THAT(run.errors(), HasSubstr("/nowhere/t.json"));
}

TEST(HarnessCrash, IsACrash) {
  HarnessRun run({"steady", "--mb", "1", "--steps", "10", "--step-time", "1ms", "--crash-at", "5"});

  EXPECT_EQ(run.finish(), 128 + SIGABRT);
  EXPECT_EQ(run.truth()["complete"], false);
}

}  // namespace
}  // namespace tidemark::tests
