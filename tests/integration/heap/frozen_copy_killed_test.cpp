// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/io.h"
#include "profiler/heap/frozen_copy.h"
#include "profiler/inject/traced_thread.h"
#include "tests/support/child_process.h"
#include "tests/support/paths.h"
#include "tests/support/subprocess.h"

namespace tidemark::heap {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using tests::ChildProcess;
using tests::Subprocess;
using tests::victim_path;

constexpr int kUsual = 20;

// The bench asks for more of them.
int number_of_kills() {
  const char* const asked = std::getenv("TIDEMARK_TEST_KILLS");
  return asked == nullptr ? kUsual : std::max(std::atoi(asked), 1);
}

// A line of its status: "SigBlk", "State"; empty: there is no such thread.
std::string status_line(pid_t pid, pid_t tid, const std::string& key) {
  const auto text = read_file(fmt::format("/proc/{}/task/{}/status", pid, tid));
  const std::size_t at = text ? text->find("\n" + key + ":") : std::string::npos;
  return at == std::string::npos ? "" : text->substr(at + 1, text->find('\n', at + 1) - at - 1);
}

// What is left for good: threads with another mask, stopped or traced ones.
std::string disturbed_thread(pid_t pid, const std::map<pid_t, std::string>& masks) {
  for (const auto& [tid, mask] : masks) {
    const std::string now = status_line(pid, tid, "SigBlk");
    const std::string state = status_line(pid, tid, "State");
    const std::string tracer = status_line(pid, tid, "TracerPid");
    if (now != mask || state.find_first_of("tT", 7) == 7 || tracer != "TracerPid:\t0") {
      return fmt::format("thread {}: {} (was {}), {}, {}", tid, now, mask, state, tracer);
    }
  }
  return "";
}

std::map<pid_t, std::string> masks_of(pid_t pid) {
  std::map<pid_t, std::string> masks;
  for (const pid_t tid : inject::threads_of(pid)) {
    masks[tid] = status_line(pid, tid, "SigBlk");
  }
  return masks;
}

// Copies that run, or wait. Other children of the process exit soon.
std::string living_children(pid_t pid) {
  std::string living;
  for (const pid_t tid : inject::threads_of(pid)) {
    const auto text = read_file(fmt::format("/proc/{}/task/{}/children", pid, tid));
    std::string_view rest = text ? std::string_view(*text) : std::string_view();
    for (std::size_t end = rest.find(' '); end != std::string_view::npos; end = rest.find(' ')) {
      pid_t child = 0;
      std::from_chars(rest.data(), rest.data() + end, child);
      rest.remove_prefix(end + 1);
      const std::string state = status_line(child, child, "State");
      living += state.empty() || state.find_first_of("ZX", 7) == 7
                    ? ""
                    : fmt::format("{} ({}) ", child, state);
    }
  }
  return living;
}

// Until something is empty, at most for seconds; what it is then.
template <typename What>
std::string becomes_empty(What what) {
  constexpr int kTimes = 3000;
  std::string is = what();
  for (int i = 0; i < kTimes && !is.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    is = what();
  }
  return is;
}

// Takes copies until it is killed, or cannot.
void take_copies(pid_t pid, const ChildProcess::Link& link) {
  link.signal_ready();
  while (true) {
    auto copy = FrozenCopy::take(pid);
    if (!copy && copy.error().sys_errno != ETIMEDOUT) {
      std::fprintf(stderr, "%s\n", copy.error().what.c_str());
      ::_exit(1);
    }
    if (copy) {
      (void)copy->release();
    }
  }
}

// Kills a process that takes copies all the time, at any moment, again and again.
void kill_takers(pid_t pid, int longest_us, bool has_children_of_its_own) {
  constexpr std::chrono::milliseconds kUntilThreadsHaveStarted(50);
  std::this_thread::sleep_for(kUntilThreadsHaveStarted);
  const auto masks = masks_of(pid);
  auto first = FrozenCopy::take(pid);
  ASSERT_TRUE(first) << first.error().what;
  ASSERT_TRUE(first->release());
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): the same moments each time
  std::uniform_int_distribution<int> pause(0, longest_us);
  for (int i = 0; i < number_of_kills(); ++i) {
    ChildProcess taker([pid](const ChildProcess::Link& link) { take_copies(pid, link); });
    ASSERT_TRUE(taker.wait_ready());
    std::this_thread::sleep_for(std::chrono::microseconds(pause(random)));
    taker.kill();
    const int status = taker.wait();
    ASSERT_TRUE(WIFSIGNALED(status)) << "no copy could be taken";
    ASSERT_EQ(becomes_empty([&] { return disturbed_thread(pid, masks); }), "") << "kill " << i;
  }
  if (!has_children_of_its_own) {
    EXPECT_EQ(becomes_empty([&] { return living_children(pid); }), "");
  }
}

void expect_well(Subprocess& job) {
  job.close_input();
  EXPECT_EQ(job.wait(), 0) << job.output();
  EXPECT_THAT(job.output(), EndsWith("done\n"));
}

constexpr int kLongestUs = 60'000;

TEST(KilledTaker, LeavesTheRegistersOfALargeProcess) {
  const bool is_bench = number_of_kills() > kUsual;
  Subprocess job({victim_path("busy_job"), "registers", is_bench ? "1024" : "512"});
  ASSERT_THAT(job.read_until("ready\n"), HasSubstr("ready"));

  kill_takers(job.pid(), kLongestUs, false);

  expect_well(job);
}

TEST(KilledTaker, LeavesABusyJob) {
  Subprocess job({victim_path("busy_job"), "stopped"});
  ASSERT_THAT(job.read_until("ready\n"), HasSubstr("ready"));

  kill_takers(job.pid(), kLongestUs / 3, true);

  expect_well(job);
}

TEST(KilledTaker, LeavesPython) {
  const std::string program = R"(
import select, sys, time
kept = [bytearray(3000) for _ in range(100000)]
odd = []
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0.001)[0]:
    if sum(i * i for i in range(1000)) != 332833500 or sum(0.5 for _ in range(1000)) != 500.0:
        odd.append("sum")
    before = time.monotonic()
    time.sleep(0.002)
    if time.monotonic() - before < 0.002:
        odd.append("sleep")
print(odd or "done")
)";
  Subprocess job({"/usr/bin/python3", "-c", program});
  ASSERT_THAT(job.read_until("ready\n"), HasSubstr("ready"));

  kill_takers(job.pid(), kLongestUs / 2, false);

  expect_well(job);
}

}  // namespace
}  // namespace tidemark::heap
