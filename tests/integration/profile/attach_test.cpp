// SPDX-License-Identifier: Apache-2.0
// `tidemark profile --pid` on programs that run already.
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/io.h"
#include "profiler/inject/attach.h"
#include "profiler/inject/traced_thread.h"
#include "profiler/reader/trace_directory.h"
#include "tests/integration/monitor/command_output.h"
#include "tests/integration/profile/attach_support.h"
#include "tests/support/temp_tree.h"

namespace tidemark {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using tests::kTraining;
using tests::Output;
using tests::run_tool;
using tests::Subprocess;
using tests::TempTree;
using tests::victim_path;

std::string pid_of(const Subprocess& process) { return std::to_string(process.pid()); }

Output profile_running(const Subprocess& process) { return tests::attach_to(process.pid()); }

bool has_frame(const json& site, const std::string& function) {
  const json& frames = site.at("frames");
  return std::any_of(frames.begin(), frames.end(), [&](const json& frame) {
    return frame.at("function").get<std::string>().find(function) != std::string::npos;
  });
}

// What a program that runs all kinds of threads says at its end: it checks itself.
class BusyProgram {
 public:
  static std::vector<std::string> command(const std::vector<std::string>& options) {
    std::vector<std::string> all{victim_path("busy_threads"), "120", "libsqlite3.so.0"};
    all.insert(all.end(), options.begin(), options.end());
    return all;
  }
  explicit BusyProgram(const std::vector<std::string>& options = {}) : process_(command(options)) {
    process_.read_until("ready\n");
  }
  Subprocess& process() { return process_; }
  // Whether nothing odd has happened to it.
  testing::AssertionResult ends_well() {
    process_.close_input();
    const int status = process_.wait();
    return status == 0 && process_.output().find(", 0 odd") != std::string::npos
               ? testing::AssertionSuccess()
               : testing::AssertionFailure() << status << process_.output() << process_.errors();
  }

 private:
  Subprocess process_;
};

std::size_t open_files(pid_t pid) {
  const std::filesystem::directory_iterator files(fmt::format("/proc/{}/fd", pid));
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

TEST(Attach, NamesTheLineThatLeaksInAProgramThatRuns) {
  const Subprocess victim({victim_path("leak_by_line"), "--count", "100000", "--step-ms", "5"});

  const Output output = profile_running(victim);

  EXPECT_THAT(output.err, HasSubstr(fmt::format("attached to pid {}", victim.pid())));
  const json report = json::parse(output.out);
  EXPECT_TRUE(has_frame(report.at("sites").at(0), "leak_here")) << output.out;
  EXPECT_EQ(::kill(victim.pid(), 0), 0);
}

TEST(Attach, NamesTheLineOfPython) {
  TempTree folder;
  folder.write("train.py", std::string(kTraining));
  Subprocess python({"/usr/bin/python3", folder.path("train.py")});
  python.read_until("ready\n");

  const Output output = profile_running(python);

  const json report = json::parse(output.out);
  const json& line = report.at("lines").at(0);
  EXPECT_EQ(line.at("language"), "python") << output.out;
  EXPECT_EQ(line.at("line"), 5) << output.out;
  EXPECT_EQ(line.at("file"), folder.path("train.py"));
}

// As a framework does whose extension is imported after that.
TEST(Attach, SeesMemoryOfACudaRuntimeThatIsLoadedLater) {
  TempTree folder;
  folder.write("train.py",
               "import ctypes, sys, time\n"
               "print('ready', flush=True)\n"
               "time.sleep(1)\n"
               "extension = ctypes.CDLL(sys.argv[1])\n"
               "extension.on_device.argtypes = [ctypes.c_size_t]\n"
               "extension.on_device.restype = ctypes.c_void_p\n"
               "while True:\n"
               "    extension.on_device(1 << 20)\n"
               "    time.sleep(0.01)\n");
  Subprocess python({"/usr/bin/python3", folder.path("train.py"),
                     TIDEMARK_BINARY_DIR
                     "/tests/programs/cuda/libtraced_cuda_extension_hashed.so"});
  python.read_until("ready\n");

  const Output output = tests::run_tool(
      {"profile", "--pid", pid_of(python), "--json", "--interval", "100ms", "--duration", "6s"});

  const json report = json::parse(output.out);
  const json& line = report.at("lines").at(0);
  EXPECT_EQ(line.at("kind"), "cuda_device") << output.out << output.err;
  EXPECT_EQ(line.at("function"), "on_device") << output.out;
  const json& frames = report.at("sites").at(0).at("frames");
  EXPECT_TRUE(std::any_of(frames.begin(), frames.end(), [](const json& frame) {
    return frame.at("kind") == "python" && frame.at("line") == 8;
  })) << frames.dump(1);
}

TEST(Attach, AttachesAgainToWhatItHasLeft) {
  TempTree folder;
  folder.write("train.py", std::string(kTraining));
  Subprocess python({"/usr/bin/python3", folder.path("train.py")});
  python.read_until("ready\n");
  profile_running(python);
  const std::size_t files = open_files(python.pid());

  const Output output = profile_running(python);

  const json report = json::parse(output.out);
  EXPECT_EQ(report.at("lines").at(0).at("line"), 5) << output.out << output.err;
  EXPECT_EQ(open_files(python.pid()), files);
}

// The first one would take the end of the second for the end of growth. It is not ended by others.
TEST(Attach, RefusesASecondToolAtTheSameTime) {
  const Subprocess victim({victim_path("leak_by_line"), "--count", "100000", "--step-ms", "5"});
  Subprocess first(
      {tests::tool_path(), "profile", "--plain", "--interval", "100ms", "--pid", pid_of(victim)});
  first.read_until("traced");

  const Output second = run_tool({"profile", "--pid", pid_of(victim), "--duration", "1s"});

  EXPECT_EQ(second.exit_code, 3);
  EXPECT_THAT(second.err, HasSubstr("another tidemark profiles it now"));
  const auto hooked = inject::Attachment::find(victim.pid());
  ASSERT_TRUE(hooked);
  const Output detached = run_tool({"profile", "--detach", pid_of(victim)});
  EXPECT_EQ(detached.exit_code, 3);
  EXPECT_THAT(detached.err, HasSubstr("another tidemark profiles process"));
  EXPECT_GT(*hooked->count_hooked(), 0U);
  first.signal(SIGINT);
  first.wait();
  EXPECT_EQ(*hooked->count_hooked(), 0U);
}

TEST(Attach, LeavesABusyProgramAsItWas) {
  BusyProgram program;
  const std::size_t files = open_files(program.process().pid());

  for (int i = 0; i < 3; ++i) {
    const Output output = run_tool({"profile", "--pid", pid_of(program.process()), "--duration",
                                    "300ms", "--interval", "100ms", "--json"});
    EXPECT_THAT(output.exit_code, testing::AnyOf(0, 4)) << output.err;
  }

  // Its threads open files for moments.
  EXPECT_LE(open_files(program.process().pid()), files + 2);
  EXPECT_TRUE(program.ends_well());
}

// Whoever is killed while it attaches leaves a program that goes on.
TEST(Attach, ProgramsSurviveAToolThatIsKilled) {
  for (const int after_ms : {5, 20, 35, 60, 100}) {
    BusyProgram program({"interruptible"});
    Subprocess tool({tests::tool_path(), "profile", "--pid", pid_of(program.process())});
    std::this_thread::sleep_for(std::chrono::milliseconds(after_ms));
    tool.signal(SIGKILL);
    tool.wait();

    EXPECT_TRUE(program.ends_well()) << after_ms;
  }
}

// Stopped and continued all the time, also in the middle of the call that loads the tracer.
TEST(Attach, HoldsWhileTheProgramIsStoppedAndContinued) {
  if (__builtin_cpu_supports("avx2") == 0) {
    GTEST_SKIP() << "the processor has no AVX2";
  }
  for (int i = 0; i < 5; ++i) {
    Subprocess victim({victim_path("hard_to_stop"), "compute"});
    victim.read_until("ready\n");
    std::atomic<bool> ends = false;
    std::thread stopper([&] {
      while (!ends) {
        victim.signal(SIGSTOP);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        victim.signal(SIGCONT);
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
      }
    });

    const Output output = run_tool({"profile", "--pid", pid_of(victim), "--duration", "100ms",
                                    "--interval", "50ms", "--json"});
    ends = true;
    stopper.join();

    // It may be refused because it is stopped just then.
    EXPECT_THAT(output.err, Not(HasSubstr("failed with signal"))) << output.err;
    victim.close_input();
    EXPECT_EQ(victim.wait(), 0) << victim.output();
  }
}

// A thread that the kernel does not stop, as in a call of a driver, holds up nobody.
TEST(Attach, LetsGoOfAThreadThatCannotBeStopped) {
  Subprocess victim({victim_path("hard_to_stop"), "vfork"});
  victim.read_until("ready\n");
  const auto is_in_vfork = [&] {
    const auto call = read_file(fmt::format("/proc/{}/syscall", victim.pid()));
    return call && call->starts_with("58 ");
  };
  while (!is_in_vfork()) {
    std::this_thread::yield();
  }

  Status stopped = ok();
  inject::in_tracing_thread(victim.pid(), [&] {
    const auto process =
        inject::StoppedProcess::stop(victim.pid(), inject::Deadline::in(50'000'000));
    stopped = process ? ok() : Status(process.error());
  });

  ASSERT_FALSE(stopped);
  EXPECT_THAT(stopped.error().what, HasSubstr("did not stop in time"));
  const auto status = read_file(fmt::format("/proc/{}/status", victim.pid()));
  EXPECT_THAT(*status, HasSubstr("TracerPid:\t0\n"));
  victim.close_input();
  EXPECT_EQ(victim.wait(), 0);
  EXPECT_THAT(victim.output(), HasSubstr("done"));
}

TEST(Attach, ProgramsThatStartOthersFromAnyThreadGoOn) {
  Subprocess victim({victim_path("hard_to_stop"), "exec", "100"});
  victim.read_until("ready\n");

  bool is_there = true;
  while (is_there) {
    inject::in_tracing_thread(victim.pid(), [&] {
      const auto process =
          inject::StoppedProcess::stop(victim.pid(), inject::Deadline::in(50'000'000));
      is_there = process || process.error().code != Errc::kGone;
    });
  }

  EXPECT_EQ(victim.wait(), 0) << victim.errors();
  EXPECT_THAT(victim.output(), HasSubstr("done"));
}

TEST(Attach, LeavesStacksWithinOtherDataAlone) {
  Subprocess victim({victim_path("hard_to_stop"), "coroutine"});
  victim.read_until("ready\n");

  const Output output = run_tool({"profile", "--pid", pid_of(victim), "--attach-timeout", "1s"});

  EXPECT_EQ(output.exit_code, 3);
  EXPECT_THAT(output.err, HasSubstr("not on its own stack"));
  victim.close_input();
  EXPECT_EQ(victim.wait(), 0) << victim.output();
}

TEST(Attach, LeavesVectorRegistersAsTheyWere) {
  if (__builtin_cpu_supports("avx2") == 0) {
    GTEST_SKIP() << "the processor has no AVX2";
  }
  Subprocess victim({victim_path("hard_to_stop"), "compute"});
  victim.read_until("ready\n");

  const Output output = run_tool(
      {"profile", "--pid", pid_of(victim), "--duration", "300ms", "--interval", "100ms", "--json"});

  EXPECT_THAT(output.err, HasSubstr("attached to pid"));
  victim.close_input();
  EXPECT_EQ(victim.wait(), 0) << victim.output();
}

TEST(Attach, AttachesAgainAfterItWasInterrupted) {
  Subprocess victim({victim_path("leak_by_line"), "--count", "100000", "--step-ms", "5"});
  for (const int after_ms : {10, 20, 40, 80, 160}) {
    Subprocess tool({tests::tool_path(), "profile", "--pid", pid_of(victim)});
    std::this_thread::sleep_for(std::chrono::milliseconds(after_ms));
    tool.signal(SIGINT);
    tool.wait();
  }

  const Output output = profile_running(victim);

  const json report = json::parse(output.out);
  EXPECT_TRUE(has_frame(report.at("sites").at(0), "leak_here")) << output.out << output.err;
}

// A run that fails behind the attachment takes the tracer out, too.
TEST(Attach, TakesTheTracerOutWhereTheRunCannotBegin) {
  TempTree folder;
  folder.write("run.tidemark", "something else");
  Subprocess victim({victim_path("leak_by_line"), "--count", "100000", "--step-ms", "5"});

  const Output output =
      run_tool({"profile", "--pid", pid_of(victim), "-o", folder.path("run.tidemark")});

  EXPECT_NE(output.exit_code, 0);
  if (const auto hooked = inject::Attachment::find(victim.pid())) {
    EXPECT_EQ(*hooked->count_hooked(), 0U);
  }
  EXPECT_EQ(json::parse(profile_running(victim).out).at("sites").empty(), false);
}

TEST(Attach, DetachTakesOutWhatAKilledToolHasLeft) {
  Subprocess victim({victim_path("leak_by_line"), "--count", "100000", "--step-ms", "5"});
  {
    Subprocess tool({tests::tool_path(), "profile", "--plain", "--pid", pid_of(victim)});
    tool.read_until("traced");
    tool.signal(SIGKILL);
    tool.wait();
  }
  const auto hooked = inject::Attachment::find(victim.pid());
  ASSERT_TRUE(hooked) << hooked.error().what;
  EXPECT_GT(*hooked->count_hooked(), 0U);

  const Output output = run_tool({"profile", "--detach", pid_of(victim)});

  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_EQ(*hooked->count_hooked(), 0U);
  EXPECT_EQ(::kill(victim.pid(), 0), 0);
}

TEST(Attach, RefusesWhatItCannotAttachTo) {
  const auto refusal = [](pid_t pid) {
    const Output output = run_tool({"profile", "--pid", std::to_string(pid)});
    EXPECT_EQ(output.exit_code, 3) << output.err;
    EXPECT_THAT(output.err, HasSubstr("hint: "));
    return output.err;
  };
  const Subprocess stopped({victim_path("leak_by_line"), "--count", "100000", "--step-ms", "5"});
  stopped.signal(SIGSTOP);
  int status = 0;
  ::waitpid(stopped.pid(), &status, WUNTRACED);
  EXPECT_THAT(refusal(stopped.pid()), HasSubstr("is stopped; resume it first: kill -CONT"));
  const Subprocess static_program({victim_path("leak_static"), "--count", "1000000"});
  EXPECT_THAT(refusal(static_program.pid()), HasSubstr("is statically linked"));
  const Subprocess traced({victim_path("leak_by_line"), "--count", "100000", "--step-ms", "5"});
  ASSERT_EQ(::ptrace(PTRACE_SEIZE, traced.pid(), nullptr, nullptr), 0);
  EXPECT_THAT(refusal(traced.pid()), HasSubstr("is traced by process"));
  Subprocess parent({victim_path("hard_to_stop"), "vfork"});
  parent.read_until("ready\n");
  std::string child;
  while (child.empty()) {
    const auto children = read_file(fmt::format("/proc/{0}/task/{0}/children", parent.pid()));
    child = children ? *children : "";
  }
  EXPECT_THAT(refusal(std::stoi(child)), HasSubstr("uses the memory of its parent"));
  EXPECT_THAT(refusal(::getpid() + 4'000'000), HasSubstr("there is no process"));
}

TEST(Attach, ReachesAProcessThatSeesNeitherTheLibraryNorOurFolders) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can make mount namespaces";
  }
  TempTree folder;
  folder.write("train.py", std::string(kTraining));
  const std::string hide = fmt::format(
      "mount -t tmpfs tmpfs /dev/shm && mount --bind {0} {1} && exec /usr/bin/python3 {0}/train.py",
      folder.path(), TIDEMARK_BINARY_DIR "/lib");
  Subprocess python({"/usr/bin/unshare", "-m", "/bin/sh", "-c", hide});
  if (python.read_until("ready\n").find("ready") == std::string::npos) {
    GTEST_SKIP() << "may not mount here";
  }

  const Output output = profile_running(python);
  const Output again = profile_running(python);

  EXPECT_EQ(json::parse(output.out).at("lines").at(0).at("line"), 5) << output.out << output.err;
  EXPECT_EQ(json::parse(again.out).at("lines").at(0).at("line"), 5) << again.out << again.err;
}

// A link of the process would lead to another folder in our view than in its own.
TEST(Attach, FollowsNoLinksOfTheProcess) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can make mount namespaces";
  }
  TempTree folder;
  folder.write("inside/file", "");
  const std::string hide = fmt::format(
      "mount -t tmpfs tmpfs /dev && ln -s {} /dev/shm && echo ready && exec {} --count 100000 "
      "--step-ms 5",
      folder.path("inside"), victim_path("leak_by_line"));
  Subprocess victim({"/usr/bin/unshare", "-m", "/bin/sh", "-c", hide});
  if (victim.read_until("ready\n").find("ready") == std::string::npos) {
    GTEST_SKIP() << "may not mount here";
  }

  const auto made = reader::TraceDirectory::create_for(victim.pid());

  ASSERT_TRUE(made) << made.error().what;
  EXPECT_THAT(made->seen_as(), testing::StartsWith("/tmp/"));
  const std::filesystem::directory_iterator files(folder.path("inside"));
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

}  // namespace
}  // namespace tidemark
