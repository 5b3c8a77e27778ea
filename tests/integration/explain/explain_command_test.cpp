// SPDX-License-Identifier: Apache-2.0
// `tidemark explain` beside programs whose memory is known, and beside what other tests watch: the
// rows add up to what the kernel counts.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/io.h"
#include "monitor/procfs/proc_smaps.h"
#include "tests/integration/monitor/command_output.h"
#include "tests/integration/profile/python_matrix.h"
#include "tests/support/paths.h"
#include "tests/support/subprocess.h"
#include "tests/support/temp_tree.h"

namespace tidemark {
namespace {

using testing::HasSubstr;
using tests::Output;
using tests::run_tool;
using tests::Subprocess;
using tests::victim_path;

constexpr double kMiB = 1024.0 * 1024.0;

nlohmann::json explained(pid_t pid, std::vector<std::string> options = {}) {
  options.insert(options.begin(), {"explain", "--pid", std::to_string(pid), "--json"});
  const Output output = run_tool(options);
  EXPECT_EQ(output.exit_code, 0) << output.err;
  auto json = nlohmann::json::parse(output.out, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(json.is_discarded()) << output.out << output.err;
  return json;
}

double sum_of(const nlohmann::json& process, const std::string& figure,
              const std::string& kind = "", const std::string& name = "") {
  double sum = 0.0;
  for (const nlohmann::json& row : process["rows"]) {
    const bool is_kind = kind.empty() || row["kind"] == kind;
    const bool is_named = name.empty() || (row["name"].is_string() && row["name"] == name);
    sum += is_kind && is_named ? row[figure].get<double>() : 0.0;
  }
  return sum;
}

const nlohmann::json* process_of(const nlohmann::json& json, pid_t pid) {
  for (const nlohmann::json& process : json["processes"]) {
    if (process["pid"] == pid) {
      return &process;
    }
  }
  return nullptr;
}

void stop(pid_t pid) {
  ::kill(pid, SIGSTOP);
  std::string text;
  while (text.find(") T ") == std::string::npos) {
    const auto stat = read_file("/proc/" + std::to_string(pid) + "/stat");
    ASSERT_TRUE(stat) << stat.error().what;
    text = *stat;
    std::this_thread::yield();
  }
}

// The program stands still meanwhile, so that both see the same.
void expect_sums(pid_t pid) {
  stop(pid);
  const nlohmann::json json = explained(pid);
  const auto text = read_file("/proc/" + std::to_string(pid) + "/smaps_rollup");
  ::kill(pid, SIGCONT);
  ASSERT_TRUE(text) << text.error().what;
  const auto kernel = monitor::parse_smaps_rollup(*text);
  ASSERT_TRUE(kernel);
  const nlohmann::json* const process = process_of(json, pid);
  ASSERT_NE(process, nullptr) << json;
  const auto rss = static_cast<double>(kernel->rss_bytes);
  EXPECT_NEAR(sum_of(*process, "rss_bytes"), rss, rss / 100) << *process;
  EXPECT_GT(sum_of(*process, "pss_bytes"), 0.0);  // it moves with others that map the same files
  EXPECT_LE(sum_of(*process, "pss_bytes"), 1.01 * rss);
  // What the status file says is rounded by each processor on some kernels.
  const double slack =
      rss / 100 + 64.0 * 4096 * static_cast<double>(::sysconf(_SC_NPROCESSORS_CONF));
  EXPECT_LE(std::abs((*process)["unexplained_rss_bytes"].get<double>()), slack) << *process;
  EXPECT_LE(std::abs((*process)["unexplained_footprint_bytes"].get<double>()), slack) << *process;
}

TEST(ExplainSums, AddUpForEveryVictim) {
  for (const char* name : {"leak_linear", "plateau_after_warmup", "sawtooth", "spikes_over_leak",
                           "cache_with_cap", "freed_but_resident"}) {
    SCOPED_TRACE(name);
    Subprocess victim({victim_path(name), "--count", "100000", "--step-ms", "5"});
    victim.read_until("\n");
    expect_sums(victim.pid());
    victim.signal(SIGKILL);
  }
}

TEST(ExplainSums, AddUpForATree) {
  const tests::TrainingTree tree;
  expect_sums(tree.truth().at("trainer").get<pid_t>());

  const nlohmann::json json = explained(tree.root());

  EXPECT_GE(json["processes"].size(), tree.pids().size());
  double pss = 0.0;
  for (const nlohmann::json& process : json["processes"]) {
    pss += sum_of(process, "pss_bytes");
  }
  EXPECT_NEAR(json["tree"]["pss_bytes"].get<double>(), pss, 1.0);
  EXPECT_NEAR(sum_of(json["tree"], "pss_bytes"), pss, 1.0);
  EXPECT_LT(pss, json["tree"]["rss_bytes"].get<double>());
}

// Heaps of threads, shared memory, files.
class MemoryRowsTest : public testing::Test {
 protected:
  MemoryRowsTest() : victim_({victim_path("memory_rows"), "/" + segment_, dir_.path("file"), "6"}) {
    victim_.read_until("ready");
  }
  ~MemoryRowsTest() override {
    victim_.close_input();
    victim_.wait();
    ::unlink(("/dev/shm/" + segment_).c_str());
  }

  const tests::TempTree dir_;
  const std::string segment_ = "torch_" + std::to_string(::getpid()) + "_1_0";
  Subprocess victim_;
};

TEST_F(MemoryRowsTest, AddUp) { expect_sums(victim_.pid()); }

TEST_F(MemoryRowsTest, AreWhatTheProgramHasMade) {
  const nlohmann::json json = explained(victim_.pid());

  const nlohmann::json& process = json["processes"][0];
  EXPECT_TRUE(process["problem"].is_null()) << process;
  EXPECT_EQ(process["threads"], 7);
  // Each heap of a thread has 4 MiB of blocks and the main one 8, of which 3/4 were freed.
  const double heaps = 8 + 6 * 4;
  EXPECT_GE(process["malloc_heaps"].get<int>(), 1) << process;
  EXPECT_NEAR(sum_of(process, "rss_bytes", "malloc_free"), 0.75 * heaps * kMiB, 3 * kMiB)
      << process;
  EXPECT_NEAR(sum_of(process, "rss_bytes", "malloc_in_use"), 0.25 * heaps * kMiB, 3 * kMiB)
      << process;
  EXPECT_NEAR(sum_of(process, "rss_bytes", "anonymous"), 64 * kMiB, 3 * kMiB) << process;
  EXPECT_NEAR(sum_of(process, "rss_bytes", "stacks"), 6 * 0.5 * kMiB, kMiB) << process;
  EXPECT_NEAR(sum_of(process, "rss_bytes", "shared_memory",
                     "/dev/shm/torch_" + std::to_string(::getpid()) + "_*"),
              12 * kMiB, 0.1 * kMiB)
      << process;
  EXPECT_NEAR(sum_of(process, "rss_bytes", "shared_memory", "/dev/zero"), 6 * kMiB, 0.1 * kMiB);
  const std::string file = dir_.path("file");
  // The folder of a test may be in memory.
  const double of_file = sum_of(process, "rss_bytes", "file", file) +
                         sum_of(process, "rss_bytes", "shared_memory", file);
  EXPECT_GE(of_file, 14.9 * kMiB) << process;
  EXPECT_GE(sum_of(process, "footprint_bytes", "", file), 4.9 * kMiB) << process;
  EXPECT_THAT(json["answer"].get<std::string>(), HasSubstr("large blocks"));
}

TEST_F(MemoryRowsTest, AreKeptAndShownAgain) {
  const nlohmann::json live =
      explained(victim_.pid(), {"--every", "200ms", "-o", dir_.path("run.tidemark")});

  const Output again = run_tool({"explain", dir_.path("run.tidemark"), "--json"});
  const Output text = run_tool({"explain", dir_.path("run.tidemark")});

  EXPECT_EQ(nlohmann::json::parse(again.out)["processes"], live["processes"]);
  EXPECT_EQ(live["processes"][0]["looks"], 2);
  EXPECT_THAT(text.out, HasSubstr("as the kernel counts it"));
  EXPECT_THAT(text.out, HasSubstr("malloc: freed, kept for later"));
}

// What Python says of its own arenas.
constexpr const char* kPython = R"py(
import os, sys, re, tempfile, threading
held = [(str(i), float(i), [i]) for i in range(150000)]
del held[::3]
threading.Thread(target=lambda: threading.Event().wait(), daemon=True).start()
with tempfile.TemporaryFile("w+") as out:
    saved = os.dup(2)
    os.dup2(out.fileno(), 2)
    sys._debugmallocstats()
    os.dup2(saved, 2)
    out.seek(0)
    text = out.read().replace(",", "")
used = re.search(r"# bytes in allocated blocks\s*=\s*(\d+)", text)
arenas = re.search(r"# arenas allocated current\s*=\s*(\d+)", text)
is_known = used and arenas  # a free-threaded Python has none
print("ready", used.group(1) if is_known else 0, arenas.group(1) if is_known else 0, flush=True)
sys.stdin.read()
)py";

TEST(ExplainPython, KnowsItsArenasInEveryVersion) {
  const tests::TempTree dir;
  dir.write("held.py", kPython);
  for (const tests::Python& python : tests::pythons()) {
    SCOPED_TRACE(python.path);
    Subprocess script({python.path, dir.path("held.py")});
    script.read_until("ready ");
    const std::string line = script.read_until("\n");
    double used = 0.0;
    double arenas = 0.0;
    ASSERT_EQ(std::sscanf(line.c_str(), "ready %lf %lf", &used, &arenas), 2) << line;

    const nlohmann::json json = explained(script.pid());

    const nlohmann::json& process = json["processes"][0];
    if (arenas == 0.0) {
      EXPECT_FALSE(process["problem"].is_null()) << process;
      continue;
    }
    EXPECT_NEAR(sum_of(process, "rss_bytes", "python_in_use"), used, used / 50) << process;
    EXPECT_NEAR(sum_of(process, "count", "python_in_use"), arenas, 1.0) << process;
    EXPECT_GT(sum_of(process, "rss_bytes", "python_free"), 0.0);
    expect_sums(script.pid());
  }
}

TEST(ExplainCommand, LooksAtACommandAndPassesItsStatusOn) {
  Subprocess tool({tests::tool_path(), "explain", "--json", "--every", "200ms", "--looks", "1",
                   "--", "/bin/sh", "-c", "read line; exit 7"});

  const std::string out = tool.read_until("\"notes\":[]}");
  tool.close_input();

  EXPECT_EQ(tool.wait(), 7) << tool.errors();
  EXPECT_THAT(out, HasSubstr("\"kind\":\"program\""));
}

TEST(ExplainCommand, OfNobodySaysSo) {
  const Output output = run_tool({"explain", "--pid", "4194303"});

  EXPECT_EQ(output.exit_code, 3);
  EXPECT_THAT(output.err, HasSubstr("there is no process 4194303"));
}

}  // namespace
}  // namespace tidemark
