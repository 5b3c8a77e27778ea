// SPDX-License-Identifier: Apache-2.0
// What `tidemark rule-out` must not do to a process.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/clock.h"
#include "profiler/collect/interventions.h"
#include "tests/integration/rule_out/rule_out_support.h"

namespace tidemark {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using tests::intervention;
using tests::outcome_of;
using tests::Output;
using tests::rule_out;
using tests::run_tool;
using tests::Script;
using tests::Subprocess;
using tests::TempTree;
using tests::victim_path;
using tests::wait_until;

class RuleOutHarm : public testing::Test {
 protected:
  void SetUp() override {
    if (::access(tests::kDebianPython, X_OK) != 0) {
      GTEST_SKIP() << "there is no Python";
    }
  }
};

// Holds the interpreter in native code until a line comes, then says how often the collector ran.
constexpr const char* kHoldsInterpreter = R"(
import ctypes, gc, os, sys, time
runs = []
gc.disable()
gc.callbacks.append(lambda phase, info: runs.append(phase))
read = ctypes.PyDLL(None).read
buffer = ctypes.create_string_buffer(1)
print("ready", flush=True)
read(0, buffer, 1)
for i in range(50):
    time.sleep(0.02)
print("runs", len(runs), flush=True)
)";

TEST_F(RuleOutHarm, DoesNothingLaterInAProcessThatHasHeldItsInterpreter) {
  Script script(kHoldsInterpreter);
  const std::size_t threads = tests::threads_in(script.pid());

  const json report = rule_out(script.pid(), {"--timeout", "5s", "--no-page-cache"}, 4);

  const json gc = intervention(report, "gc");
  EXPECT_EQ(gc.at("outcome"), "cannot_tell") << report.dump(1);
  EXPECT_THAT(gc.at("problem"), HasSubstr("no thread let another one run Python for 5.0"));
  EXPECT_THAT(gc.at("problem"), HasSubstr("will not be done later"));
  EXPECT_EQ(outcome_of(report, "trim"), "ruled_out");
  ASSERT_THAT(script.ask("x", "runs 0\n"), HasSubstr("runs 0\n"));
  EXPECT_EQ(script.process().wait(), 0) << script.process().errors();
  EXPECT_GE(threads, 1U);
}

TEST_F(RuleOutHarm, LeavesNoThreadThatWaitsBehind) {
  Script script(kHoldsInterpreter);
  const std::size_t threads = tests::threads_in(script.pid());
  (void)rule_out(script.pid(), {"--timeout", "3s", "--only", "gc"}, 4);
  EXPECT_EQ(tests::threads_in(script.pid()), threads + 1);

  script.process().send("x");

  EXPECT_TRUE(wait_until([&] { return tests::threads_in(script.pid()) <= threads; }));
  EXPECT_THAT(script.process().read_until("runs 0\n"), HasSubstr("runs 0\n"));
}

// What was begun cannot be withdrawn, and is not waited for without end.
TEST_F(RuleOutHarm, SaysThatACollectionTakesTooLong) {
  Script script(
      "import gc, sys\n"
      "runs = []\n"
      "def on_collection(phase, info):\n"
      "    runs.append(phase)\n"
      "    if len(runs) == 1:\n"
      "        print('line', sys.stdin.readline(), flush=True)\n"
      "gc.disable()\n"
      "gc.callbacks.append(on_collection)\n"
      "import threading\n"
      "over = threading.Event()\n"
      "print('ready', flush=True)\n"
      "while len(runs) < 2:\n"
      "    over.wait(0.01)\n"
      "print('collected', flush=True)\n");

  const json report = rule_out(script.pid(), {"--timeout", "4s", "--only", "gc,cuda"}, 4);

  ASSERT_EQ(outcome_of(report, "gc"), "cannot_tell") << report.dump(1);
  ASSERT_THAT(intervention(report, "gc").at("problem"), HasSubstr("still runs after 8.0 s"));
  EXPECT_THAT(intervention(report, "cuda").at("problem"), HasSubstr("an earlier call still runs"));
  ASSERT_THAT(script.ask("go on", "collected\n"), HasSubstr("collected"));
  EXPECT_EQ(script.process().wait(), 0) << script.process().errors();
}

// The interpreter exits while the probe waits for it, which ends the thread.
TEST_F(RuleOutHarm, LetsAnInterpreterExitThatItWaitsFor) {
  for (const tests::Python& python : tests::pythons()) {
    SCOPED_TRACE(python.path);
    Script script(
        "import ctypes\n"
        "read = ctypes.PyDLL(None).read\n"
        "buffer = ctypes.create_string_buffer(1)\n"
        "print('ready', flush=True)\n"
        "read(0, buffer, 1)\n"
        "print('over', flush=True)\n",
        python.path);
    (void)rule_out(script.pid(), {"--timeout", "1s", "--only", "gc"}, 4);

    script.process().close_input();

    EXPECT_EQ(script.process().wait(), 0) << script.process().errors();
    EXPECT_THAT(script.process().output(), HasSubstr("over\n"));
  }
}

// Steps with garbage, threads and children; what it prints depends on all of them.
constexpr const char* kDeterministic = R"(
import gc, hashlib, os, sys, threading
digest = hashlib.sha256()
state = 12345
class Node:
    pass
def work(results, n):
    results[n] = sum(i * i % 7 for i in range(20000))
print("ready", flush=True)
for step in range(STEPS):
    nodes = []
    for i in range(200):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        node = Node()
        node.other, node.value = node, state
        nodes.append(node)
    results = {}
    threads = [threading.Thread(target=work, args=(results, n)) for n in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    if step % 20 == 0:
        child = os.fork()
        if child == 0:
            os._exit(step % 100)
        results["child"] = os.waitpid(child, 0)[1]
    digest.update(repr((sorted(map(str, results.items())), [n.value for n in nodes])).encode())
print(digest.hexdigest(), flush=True)
)";

TEST_F(RuleOutHarm, ChangesNoResults) {
  const std::string text = std::string("STEPS = 400\n") + kDeterministic;
  Script alone(text);
  ASSERT_EQ(alone.process().wait(), 0);
  Script job(text);

  int rounds = 0;
  while (job.process().output().size() < 20 && rounds < 2) {
    (void)run_tool({"rule-out", "--pid", std::to_string(job.pid()), "--settle", "10ms"});
    ++rounds;
  }

  EXPECT_EQ(job.process().wait(), 0) << job.process().errors();
  EXPECT_EQ(job.process().output(), alone.process().output());
  EXPECT_EQ(job.process().errors(), alone.process().errors());
}

// One round of all interventions, without the pauses in which memory is measured.
void intervene_once(pid_t pid) {
  const auto plan = collect::plan_interventions(pid, {});
  ASSERT_TRUE(plan) << plan.error().what;
  auto probe = collect::start_probe(pid, 20 * kNsPerSecond, [] { return false; });
  ASSERT_TRUE(probe) << probe.error().what;
  for (const collect::PlannedIntervention& step : plan->steps) {
    if (!step.is_reading() && step.problem.empty()) {
      const auto answer = collect::intervene(*probe, step, 20 * kNsPerSecond);
      ASSERT_TRUE(answer) << answer.error().what;
      EXPECT_TRUE(answer->is_done || answer->is_absent) << answer->problem;
    }
  }
}

TEST_F(RuleOutHarm, GrowsNoProcessInAHundredRounds) {
  const Script script(tests::kLiveList);
  for (int i = 0; i < 3; ++i) {
    intervene_once(script.pid());
  }
  const std::uint64_t footprint = tests::anonymous_bytes(script.pid());
  const std::size_t mappings = tests::mappings_in(script.pid());
  const std::size_t descriptors = tests::descriptors_in(script.pid());

  for (int i = 0; i < 100 && !HasFailure(); ++i) {
    intervene_once(script.pid());
  }

  EXPECT_TRUE(wait_until([&] { return tests::threads_in(script.pid()) == 1; }));
  EXPECT_LE(tests::anonymous_bytes(script.pid()), footprint + (std::uint64_t{1} << 20U));
  EXPECT_LE(tests::mappings_in(script.pid()), mappings + 2);
  EXPECT_EQ(tests::descriptors_in(script.pid()), descriptors);
}

TEST_F(RuleOutHarm, LetsAProcessForkAsItLikes) {
  Script script(
      "import os, sys, threading\n"
      "over = threading.Event()\n"
      "threading.Thread(target=lambda: (sys.stdin.readline(), over.set())).start()\n"
      "print('ready', flush=True)\n"
      "count = 0\n"
      "while not over.is_set():\n"
      "    child = os.fork()\n"
      "    if child == 0:\n"
      "        import gc\n"
      "        kept = [bytearray(1000) for _ in range(100)]\n"
      "        gc.collect()\n"
      "        os._exit(7)\n"
      "    assert os.waitpid(child, 0)[1] >> 8 == 7\n"
      "    count += 1\n"
      "print('forked', count > 0, flush=True)\n");

  for (int i = 0; i < 20 && !HasFailure(); ++i) {
    intervene_once(script.pid());
  }

  EXPECT_THAT(script.ask("over", "forked"), HasSubstr("forked"));
  EXPECT_EQ(script.process().wait(), 0) << script.process().errors();
}

// A child has the library and the memory of its parent, and not its thread.
TEST_F(RuleOutHarm, WorksInAForkedChildAsWell) {
  Script script(
      "import os, sys, time\n"
      "print('ready', flush=True)\n"
      "for line in sys.stdin:\n"
      "    child = os.fork()\n"
      "    if child == 0:\n"
      "        while True:\n"
      "            time.sleep(0.01)\n"
      "    print('child', child, ';', flush=True)\n");
  const auto plan = collect::plan_interventions(script.pid(), {});
  ASSERT_TRUE(plan);
  const auto probe = collect::start_probe(script.pid(), 20 * kNsPerSecond, [] { return false; });
  ASSERT_TRUE(probe) << probe.error().what;
  const std::string answer = script.ask("fork", ";\n");
  const pid_t child = std::stoi(answer.substr(answer.find("child ") + 6));

  intervene_once(child);
  EXPECT_TRUE(wait_until([&] { return tests::threads_in(child) == 1; }));

  ::kill(child, SIGKILL);
}

TEST_F(RuleOutHarm, LeavesAProcessAloneThatIsStopped) {
  Script script(tests::kLiveList);
  script.process().signal(SIGSTOP);

  const json report = rule_out(script.pid(), {}, 3);

  EXPECT_THAT(intervention(report, "trim").at("problem"), HasSubstr("is stopped; resume it first"));
  EXPECT_FALSE(tests::has_probe(script.pid()));
  script.process().signal(SIGCONT);
  script.process().close_input();
  EXPECT_EQ(script.process().wait(), 0);
}

TEST_F(RuleOutHarm, SaysWhatItCannotDoInAStaticProgram) {
  Subprocess victim({victim_path("leak_static"), "--count", "100000", "--step-ms", "5"});
  victim.read_until("\n");

  const json report = rule_out(victim.pid(), {}, 3);

  EXPECT_EQ(outcome_of(report, "trim"), "cannot_tell") << report.dump(1);
  EXPECT_THAT(intervention(report, "trim").at("problem"), HasSubstr("is statically linked"));
  EXPECT_NE(outcome_of(report, "mapped_files"), "cannot_tell");
}

TEST_F(RuleOutHarm, ReachesAProcessThatSeesNeitherLibrary) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can make mount namespaces";
  }
  const TempTree folder;
  folder.write("script.py", tests::kCycles);
  const std::string hide =
      fmt::format("mount -t tmpfs tmpfs /dev/shm && mount --bind {0} {1} && exec {2} {0}/script.py",
                  folder.path(), TIDEMARK_BINARY_DIR "/lib", tests::kDebianPython);
  Subprocess python({"/usr/bin/unshare", "-m", "/bin/sh", "-c", hide});
  if (python.read_until("ready\n").find("ready") == std::string::npos) {
    GTEST_SKIP() << "may not mount here";
  }

  // The tracer first: what is loaded by the same descriptor is another library.
  const Output traced = run_tool({"profile", "--pid", std::to_string(python.pid()), "--duration",
                                  "300ms", "--interval", "100ms"});
  const json report = rule_out(python.pid(), {"--only", "gc"});
  const json again = rule_out(python.pid(), {"--only", "gc"});

  EXPECT_THAT(traced.err, HasSubstr("attached to pid"));
  EXPECT_EQ(outcome_of(report, "gc"), "confirmed") << report.dump(1);
  EXPECT_EQ(outcome_of(again, "gc"), "ruled_out") << again.dump(1);
}

TEST_F(RuleOutHarm, SaysThatTheProcessHasExited) {
  Script script(tests::kLiveList);
  Subprocess tool({tests::tool_path(), "rule-out", "--pid", std::to_string(script.pid()), "--json",
                   "--settle", "60s"});
  ASSERT_TRUE(wait_until([&] { return tests::has_probe(script.pid()); }));

  script.process().close_input();

  EXPECT_EQ(script.process().wait(), 0);
  EXPECT_EQ(tool.wait(), 3) << tool.output() << tool.errors();
  EXPECT_THAT(intervention(json::parse(tool.output()), "trim").at("problem"),
              HasSubstr("has exited"));
}

TEST_F(RuleOutHarm, LeavesAnotherProgramAlone) {
  Script script(
      "import os, sys\n"
      "print('ready', flush=True)\n"
      "sys.stdin.readline()\n"
      "os.execv(sys.executable, [sys.executable, '-c', 'import sys; print(\"other\", flush=True); "
      "sys.stdin.read()'])\n");
  Subprocess tool({tests::tool_path(), "rule-out", "--pid", std::to_string(script.pid()), "--json",
                   "--settle", "60s"});
  ASSERT_TRUE(wait_until([&] { return tests::has_probe(script.pid()); }));

  EXPECT_THAT(script.ask("go", "other\n"), HasSubstr("other\n"));

  EXPECT_EQ(tool.wait(), 3) << tool.output() << tool.errors();
  script.process().close_input();
  EXPECT_EQ(script.process().wait(), 0);
}

// The thread notices, and the next tool finds all in order.
TEST_F(RuleOutHarm, SurvivesAToolThatIsKilled) {
  Script script(tests::kCycles);
  Subprocess tool(
      {tests::tool_path(), "rule-out", "--pid", std::to_string(script.pid()), "--settle", "60s"});
  ASSERT_TRUE(wait_until([&] { return tests::threads_in(script.pid()) == 2; }));

  tool.signal(SIGKILL);
  tool.wait();

  EXPECT_TRUE(wait_until([&] { return tests::threads_in(script.pid()) == 1; }));
  EXPECT_EQ(outcome_of(rule_out(script.pid(), {"--only", "gc"}), "gc"), "confirmed");
}

TEST_F(RuleOutHarm, IsToldToStopAndGivesTheAnswerSoFar) {
  const Script script(tests::kLiveList);
  Subprocess tool({tests::tool_path(), "rule-out", "--pid", std::to_string(script.pid()), "--json",
                   "--settle", "60s"});
  ASSERT_TRUE(wait_until([&] { return tests::threads_in(script.pid()) == 2; }));

  tool.signal(SIGINT);

  EXPECT_EQ(tool.wait(), 4);
  const json report = json::parse(tool.output(), nullptr, false);
  ASSERT_FALSE(report.is_discarded()) << tool.output();
  EXPECT_NE(outcome_of(report, "mapped_files"), "cannot_tell");
  EXPECT_EQ(outcome_of(report, "trim"), "cannot_tell");
  EXPECT_EQ(intervention(report, "gc").at("problem"), "it was given up");
  EXPECT_TRUE(wait_until([&] { return tests::threads_in(script.pid()) == 1; }));
}

TEST_F(RuleOutHarm, IsDoneByOneToolAtATime) {
  const Script script(tests::kLiveList);
  const auto first = collect::start_probe(script.pid(), 20 * kNsPerSecond, [] { return false; });
  ASSERT_TRUE(first) << first.error().what;

  const auto second = collect::start_probe(script.pid(), 20 * kNsPerSecond, [] { return false; });

  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().what, HasSubstr("another tidemark"));
}

TEST_F(RuleOutHarm, LeavesSubinterpretersAloneAndSaysSo) {
  const Script script(
      "import sys\n"
      "try:\n"
      "    import _xxsubinterpreters as interpreters\n"
      "except ImportError:\n"
      "    import _interpreters as interpreters\n"
      "kept = interpreters.create()\n"
      "print('ready', flush=True)\n"
      "sys.stdin.read()\n");

  const json report = rule_out(script.pid(), {"--only", "gc"});

  EXPECT_THAT(intervention(report, "gc").at("problem"), HasSubstr("subinterpreters"));
}

}  // namespace
}  // namespace tidemark
