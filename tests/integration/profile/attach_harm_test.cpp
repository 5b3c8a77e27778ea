// SPDX-License-Identifier: Apache-2.0
// What attaching must not do to a program. Most of these ended or held up one before.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/clock.h"
#include "common/io.h"
#include "profiler/inject/remote_call.h"
#include "profiler/inject/remote_modules.h"
#include "profiler/inject/traced_thread.h"
#include "tests/integration/monitor/command_output.h"
#include "tests/integration/profile/attach_support.h"
#include "tests/support/temp_tree.h"

namespace tidemark {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using tests::Output;
using tests::run_tool;
using tests::Subprocess;
using tests::TempTree;
using tests::victim_path;

std::string pid_of(const Subprocess& process) { return std::to_string(process.pid()); }

Output attach_for(const Subprocess& process, const std::string& duration,
                  const std::vector<std::string>& options = {}) {
  std::vector<std::string> arguments = {"profile",    "--pid", pid_of(process), "--json",
                                        "--interval", "100ms", "--duration",    duration};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return run_tool(arguments);
}

// A plugin's malloc is bound to its own allocator and its free not yet: both stay as they are.
TEST(AttachHarm, LeavesPluginsWithAnAllocatorOfTheirOwnAlone) {
  Subprocess victim({victim_path("hard_to_stop"), "plugin", TIDEMARK_BINARY_DIR "/tests/programs"});
  ASSERT_THAT(victim.read_until("ready\n"), HasSubstr("ready"));

  const Output output = attach_for(victim, "500ms");

  EXPECT_THAT(output.err, HasSubstr("attached to pid"));
  victim.close_input();
  EXPECT_EQ(victim.wait(), 0) << victim.output() << victim.errors();
}

TEST(AttachHarm, RefusesAProcessThatItsFilterMayEnd) {
  Subprocess victim({victim_path("hard_to_stop"), "filtered"});
  if (victim.read_until("ready\n").find("ready") == std::string::npos) {
    GTEST_SKIP() << "may not filter system calls here";
  }

  const Output output = attach_for(victim, "500ms");

  EXPECT_EQ(output.exit_code, 3);
  EXPECT_THAT(output.err, HasSubstr("has filtered its system calls"));
  victim.close_input();
  EXPECT_EQ(victim.wait(), 0) << victim.output();
}

// Calls getpid() in a thread that waits; a signal comes meanwhile.
Status call_while_signalled(const Subprocess& victim) {
  TIDEMARK_TRY_ASSIGN(const auto memory, inject::RemoteMemory::open(victim.pid()));
  TIDEMARK_TRY_ASSIGN(const auto space, inject::read_address_space(victim.pid(), memory));
  TIDEMARK_TRY_ASSIGN(auto thread, inject::TracedThread::seize(victim.pid()));
  const auto deadline = inject::Deadline::in(10 * kNsPerSecond);
  TIDEMARK_TRY(thread.stop(deadline));
  TIDEMARK_TRY_ASSIGN(auto call,
                      inject::RemoteCall::prepare(thread, memory, space.mappings,
                                                  inject::find_call_ending(space, memory)));
  victim.signal(SIGUSR1);
  const std::uint64_t function = inject::find_exported(*space.find("libc.so.6"), memory, "getpid");
  TIDEMARK_TRY_ASSIGN(const std::uint64_t pid, call.call(function, {}, deadline));
  EXPECT_EQ(pid, static_cast<std::uint64_t>(victim.pid()));
  return call.let_signals_in();
}

class AttachHarmTo : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(AWaitBy, AttachHarmTo, testing::Values("sleep", "read", "semaphore"),
                         [](const auto& way) { return std::string(way.param); });

// The only thread waits, and is stopped several times before it loads the library. Its wait goes on
// until a signal ends it.
TEST_P(AttachHarmTo, IsNoneWhereNoSignalComes) {
  Subprocess victim({victim_path("hard_to_stop"), GetParam()});
  victim.read_until("ready\n");
  while (!inject::waits_in_system_call(victim.pid(), victim.pid())) {
    std::this_thread::yield();
  }

  const Output output = attach_for(victim, "300ms");

  EXPECT_THAT(output.err, HasSubstr("attached to pid"));
  EXPECT_TRUE(inject::waits_in_system_call(victim.pid(), victim.pid()));
  victim.read_for(std::chrono::milliseconds(100));
  EXPECT_EQ(victim.output(), "ready\n");
  victim.signal(SIGUSR1);
  victim.read_until("done\n");
  EXPECT_THAT(victim.output(), HasSubstr("done"));
  victim.close_input();
  EXPECT_EQ(victim.wait(), 0);
}

// A signal that comes while the library is loaded ends a wait, as it does without us.
TEST_P(AttachHarmTo, IsNoneWhereASignalComes) {
  Subprocess victim({victim_path("hard_to_stop"), GetParam()});
  victim.read_until("ready\n");
  while (!inject::waits_in_system_call(victim.pid(), victim.pid())) {
    std::this_thread::yield();
  }

  Status called = ok();
  inject::in_tracing_thread(victim.pid(), [&] { called = call_while_signalled(victim); });

  EXPECT_TRUE(called) << called.error().what;
  victim.read_for(std::chrono::seconds(20));  // until it ends
  EXPECT_THAT(victim.output(), HasSubstr("done"));
  victim.close_input();
  victim.signal(SIGKILL);
  victim.wait();
}

// The library cannot be loaded, as the thread is told where it may look at why another call failed.
TEST(AttachHarm, LeavesErrnoAsItWas) {
  Subprocess victim({victim_path("hard_to_stop"), "errno"});
  victim.read_until("ready\n");

  const Output output = attach_for(victim, "100ms");

  EXPECT_EQ(output.exit_code, 3);
  EXPECT_THAT(output.err, HasSubstr("cannot create a memory file: Too many open files"));
  victim.close_input();
  EXPECT_EQ(victim.wait(), 0) << victim.output();
}

// What a memory file is called by is a descriptor of its own in a program that it starts.
TEST(AttachHarm, LeavesTheDescriptorsOfStartedProgramsAlone) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can make mount namespaces";
  }
  TempTree folder;
  folder.write("start.py",
               "import os, subprocess, time\n"
               "kept = []\n"
               "print('ready', flush=True)\n"
               "for i in range(150):\n"
               "    ends = os.pipe()\n"
               "    for end in ends:\n"
               "        os.set_inheritable(end, True)\n"
               "    subprocess.run(['/bin/true'], close_fds=False, timeout=20, check=True)\n"
               "    for end in ends:\n"
               "        os.close(end)\n"
               "    kept.append(bytearray(300_000))\n"
               "    time.sleep(0.01)\n"
               "print('done', flush=True)\n");
  const std::string hide = fmt::format(
      "mount -t tmpfs tmpfs /dev/shm && mount --bind {0} {1} && exec /usr/bin/python3 {0}/start.py",
      folder.path(), TIDEMARK_BINARY_DIR "/lib");
  Subprocess python({"/usr/bin/unshare", "-m", "/bin/sh", "-c", hide});
  if (python.read_until("ready\n").find("ready") == std::string::npos) {
    GTEST_SKIP() << "may not mount here";
  }

  const Output output = attach_for(python, "1s");

  EXPECT_THAT(output.err, HasSubstr("attached to pid"));
  EXPECT_EQ(python.wait(), 0) << python.errors();
  EXPECT_THAT(python.output(), HasSubstr("done"));
}

TEST(AttachHarm, TakesATracerOfAnotherVersionForWhatItIs) {
  const std::string other = TIDEMARK_BINARY_DIR "/tests/programs/other_version";
  Subprocess victim({"/usr/bin/env", "LD_PRELOAD=" + other + "/libtidemark_tracer.so",
                     victim_path("hard_to_stop"), "sleep"});
  victim.read_until("ready\n");

  const Output output = run_tool({"profile", "--detach", pid_of(victim)});

  EXPECT_EQ(output.exit_code, 3);
  EXPECT_THAT(output.err, HasSubstr("is of another version"));
  victim.signal(SIGUSR1);
  EXPECT_EQ(victim.wait(), 0);
}

// Whichever thread loads the tracer, the first one is known to have the stack of the process.
TEST(AttachHarm, WalksTheFirstStackToItsEnd) {
  Subprocess victim({victim_path("hard_to_stop"), "deep"});
  victim.read_until("ready\n");

  const Output output = attach_for(victim, "3s", {"--mode", "exact"});

  victim.close_input();
  EXPECT_EQ(victim.wait(), 0) << victim.output();
  const json report = json::parse(output.out);
  const json& frames = report.at("sites").at(0).at("frames");
  EXPECT_TRUE(std::any_of(
      frames.begin(), frames.end(),
      [](const json& frame) {
        return frame.at("function").get<std::string>().find("begin_deep_down") != std::string::npos;
      }))
      << frames.dump(1) << output.err;
}

// The kernel shows no mappings of a first thread that has exited, and has no memory of it.
TEST(AttachHarm, TakesTheTracerOutWhereTheFirstThreadHasExited) {
  tests::TempTree folder;
  folder.write("train.py",
               "import ctypes, os, select, sys, threading, time\n"
               "kept = []\n"
               "def work():\n"
               "    while not select.select([sys.stdin], [], [], 0.005)[0]:\n"
               "        kept.append(bytearray(300_000))\n"
               "    print('done', flush=True)\n"
               "    os._exit(0)\n"
               "threading.Thread(target=work).start()\n"
               "print('ready', flush=True)\n"
               "while 'tidemark_tracer' not in open('/proc/self/maps').read():\n"
               "    time.sleep(0.02)\n"
               "time.sleep(0.5)\n"
               "ctypes.CDLL(None).pthread_exit(None)\n");
  Subprocess python({"/usr/bin/python3", folder.path("train.py")});
  python.read_until("ready\n");

  const Output output = tests::attach_to(python.pid(), {}, "3s");

  const auto maps = read_file(fmt::format("/proc/{}/maps", python.pid()));
  ASSERT_TRUE(maps);
  EXPECT_EQ(*maps, "") << "its first thread is still there";
  EXPECT_THAT(tests::problems_of(tests::report_of(output)),
              testing::Not(HasSubstr("is not out of process")));
  EXPECT_EQ(tests::hooked_places(python.pid()), 0U);
  EXPECT_TRUE(inject::Attachment::find(python.pid()));
  python.close_input();
  EXPECT_EQ(python.wait(), 0) << python.errors();
  EXPECT_THAT(python.output(), HasSubstr("done"));
}

}  // namespace
}  // namespace tidemark
