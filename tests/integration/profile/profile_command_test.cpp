// SPDX-License-Identifier: Apache-2.0
// `tidemark profile` as a user runs it, with the real tracer in a program whose leak is known.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/fd.h"
#include "common/io.h"
#include "profiler/wire/trace_layout.h"
#include "tests/integration/monitor/command_output.h"
#include "tests/support/speedscope_check.h"
#include "tests/support/temp_tree.h"

namespace tidemark {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using tests::Output;
using tests::run_tool;
using tests::Subprocess;
using tests::TempTree;
using tests::victim_path;

constexpr double kLeakPerStep = 256.0 * 1024.0;

// A short run of the victim; its first step is step 1, the allowance ends early.
Output profile(std::vector<std::string> options, const std::vector<std::string>& victim = {}) {
  std::vector<std::string> arguments = {"profile", "--interval", "100ms", "--warmup", "20steps"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.end(), {"--", victim_path("leak_by_line")});
  arguments.insert(arguments.end(), victim.begin(), victim.end());
  return run_tool(arguments);
}

// The place of the leak among the frames of a site; nullptr: it is not there.
const json* frame_named(const json& site, const std::string& function) {
  for (const json& frame : site.at("frames")) {
    if (frame.at("function").get<std::string>().find(function) != std::string::npos) {
      return &frame;
    }
  }
  return nullptr;
}

// The mode that a tracer is in.
std::optional<wire::Mode> mode_in(const std::string& trace) {
  const auto bytes = read_file(trace);
  if (!bytes || bytes->size() < wire::kHeaderBytes) {
    return std::nullopt;
  }
  std::uint32_t mode = 0;
  std::memcpy(&mode, bytes->data() + offsetof(wire::Header, control), sizeof mode);
  return static_cast<wire::Mode>(mode);
}

TEST(ProfileCommand, NamesTheLineThatLeaksAndItsRate) {
  const Output output = profile({"--json", "--mode", "exact"});

  EXPECT_EQ(output.exit_code, 7) << output.err;    // the command's own
  const std::size_t begin = output.err.find('{');  // notes of ours may come first
  ASSERT_NE(begin, std::string::npos) << output.err;
  const json truth = json::parse(output.err.substr(begin, output.err.find('\n', begin) - begin));
  const json report = json::parse(output.out);
  const json& site = report.at("sites").at(0);
  EXPECT_EQ(site.at("verdict"), "leak") << site.dump(1);
  EXPECT_NEAR(site.at("growth_bytes_per_step").get<double>(), kLeakPerStep, 0.1 * kLeakPerStep);
  const json* frame = frame_named(site, "leak_here");
  ASSERT_NE(frame, nullptr) << site.dump(1);
  EXPECT_EQ(frame->at("line"), truth.at("line"));
  EXPECT_GT(site.at("share_of_growth").get<double>(), 0.8);
  EXPECT_NEAR(site.at("live_bytes").get<double>(), 100.0 * kLeakPerStep, 2.0 * kLeakPerStep);
  EXPECT_EQ(report.at("coverage").at("dropped_records"), 0);
}

// Threads count in places of their own: what they do at one line is one site all the same.
TEST(ProfileCommand, AddsUpWhatTheThreadsOfAProcessHold) {
  const Output output = profile({"--json", "--mode", "exact"},
                                {"--threads", "8", "--leak-kb", "32", "--hold-mb", "0"});

  const json report = json::parse(output.out);
  const json& site = report.at("sites").at(0);
  EXPECT_NE(frame_named(site, "leak_here"), nullptr) << site.dump(1);
  EXPECT_NEAR(site.at("growth_bytes_per_step").get<double>(), kLeakPerStep, 0.2 * kLeakPerStep);
  EXPECT_NEAR(site.at("live_bytes").get<double>(), 100.0 * kLeakPerStep, 2.0 * kLeakPerStep);
  EXPECT_GT(site.at("share_of_growth").get<double>(), 0.8) << site.dump(1);
  for (const json& other : report.at("sites")) {
    EXPECT_TRUE(&other == &site || frame_named(other, "leak_here") == nullptr) << other.dump(1);
  }
}

// A shell that becomes the job, and one that starts it.
TEST(ProfileCommand, FindsTheLineOfAProgramThatAScriptStarts) {
  for (const char* const script : {"exec \"$0\"", "\"$0\"; exit $?"}) {
    const Output output =
        run_tool({"profile", "--interval", "100ms", "--warmup", "20steps", "--json", "--mode",
                  "exact", "--", "/bin/sh", "-c", script, victim_path("leak_by_line")});

    const json report = json::parse(output.out);
    const json& site = report.at("sites").at(0);
    EXPECT_NE(frame_named(site, "leak_here"), nullptr) << script << '\n' << site.dump(1);
    EXPECT_NEAR(site.at("growth_bytes_per_step").get<double>(), kLeakPerStep, 0.2 * kLeakPerStep);
    EXPECT_NEAR(site.at("live_bytes").get<double>(), 100.0 * kLeakPerStep, 2.0 * kLeakPerStep);
  }
}

TEST(ProfileCommand, FindsTheLineFromSamplesToo) {
  const Output output = profile({"--json", "--sample-every", "64KiB"});

  const json report = json::parse(output.out);
  const json& site = report.at("sites").at(0);
  EXPECT_NE(frame_named(site, "leak_here"), nullptr) << site.dump(1);
  EXPECT_NEAR(site.at("growth_bytes_per_step").get<double>(), kLeakPerStep, 0.2 * kLeakPerStep);
  EXPECT_EQ(report.at("target").at("processes").at(0).at("mode"), "sampled");
}

TEST(ProfileCommand, LeavesStdoutToTheCommand) {
  const Output output = profile({"--mode", "exact"}, {"--count", "40"});

  EXPECT_THAT(output.out, StartsWith("{\"victim\":\"leak_by_line\""));
  EXPECT_EQ(std::count(output.out.begin(), output.out.end(), '\n'), 1);
  EXPECT_THAT(output.err, HasSubstr("leak_here"));
  EXPECT_THAT(output.err, HasSubstr("coverage exact"));
  EXPECT_THAT(output.err, Not(HasSubstr("libtidemark_tracer")));
  EXPECT_THAT(output.err, Not(HasSubstr("\x1b")));
}

TEST(ProfileCommand, ReportsAfterTheCommandWasKilled) {
  const Output output = profile({"--json", "--mode", "exact"}, {"--die", "9"});

  EXPECT_EQ(output.exit_code, 128 + SIGKILL);
  const json report = json::parse(output.out);
  const json& site = report.at("sites").at(0);
  EXPECT_NE(frame_named(site, "leak_here"), nullptr) << site.dump(1);
  EXPECT_NEAR(site.at("live_bytes").get<double>(), 100.0 * kLeakPerStep, 1.0);
}

TEST(ProfileCommand, RefusesOptionsThatCannotBeApplied) {
  const auto refused = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "profile");
    const Output output = run_tool(arguments);
    EXPECT_EQ(output.exit_code, 2) << output.err;
    return output.err;
  };

  EXPECT_THAT(refused({"--mode", "exact", "--sample-every", "64KiB", "--", "true"}),
              HasSubstr("--sample-every is for sampled mode"));
  EXPECT_THAT(refused({"--force", "--", "true"}), HasSubstr("--force is for --output"));
  EXPECT_THAT(refused({"--pid", "1", "--no-follow"}), HasSubstr("they are for -- COMMAND"));
}

TEST(ProfileCommand, RecordsWhatItSawAndShowsItAgain) {
  const TempTree dir;
  const std::string file = dir.path("run.tidemark");
  const Output live = profile({"--json", "--mode", "exact", "-o", file});

  const Output again = run_tool({"profile", file, "--json", "--warmup", "20steps"});
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{"-o", dir.path("other")},
                                             {"--duration", "5s"},
                                             {"--interval", "2s"},
                                             {"--pss", "off"},
                                             {"--mode", "exact"},
                                             {"--no-follow"}}) {
    std::vector<std::string> arguments = {"profile", file};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Output refused = run_tool(arguments);
    EXPECT_EQ(refused.exit_code, 2) << more.front();
    EXPECT_THAT(refused.err, HasSubstr("not for a recording"));
  }
  const Output track = run_tool({"track", file, "--warmup", "20steps", "--json"});
  const Output csv = run_tool({"export", file, "--format", "csv"});

  const json first = json::parse(live.out);
  const json second = json::parse(again.out);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(first.at("sites").at(0), second.at("sites").at(0));
  EXPECT_EQ(json::parse(track.out).at("schema"), 1);
  EXPECT_THAT(csv.out, HasSubstr("footprint_bytes"));
}

TEST(ProfileCommand, ExportsFlameGraphs) {
  const TempTree dir;
  const std::string file = dir.path("run.tidemark");
  profile({"--json", "--mode", "exact", "-o", file});

  const Output folded = run_tool({"export", file, "--format", "folded"});
  const Output growth = run_tool({"export", file, "--format", "folded", "--from", "1s"});
  const Output speedscope = run_tool({"export", file, "--format", "speedscope"});
  const Output pprof =
      run_tool({"export", file, "--format", "pprof", "-o", dir.path("profile.pb")});
  const Output csv = run_tool({"export", file, "--format", "csv", "--from", "1s"});
  const Output backwards =
      run_tool({"export", file, "--format", "folded", "--from", "2s", "--to", "1s"});
  const Output beyond = run_tool({"export", file, "--format", "folded", "--from", "1h"});

  EXPECT_EQ(backwards.exit_code, 2);
  EXPECT_THAT(backwards.err, HasSubstr("--from has to be before --to"));
  EXPECT_EQ(beyond.exit_code, 2);
  EXPECT_THAT(beyond.err, HasSubstr("--from is behind the end of the recording"));
  EXPECT_THAT(folded.out, HasSubstr("hold_at_start"));
  EXPECT_THAT(growth.out, HasSubstr("leak_here"));
  EXPECT_THAT(growth.out, Not(HasSubstr("hold_at_start")));
  EXPECT_EQ(tests::speedscope_problem(speedscope.out), "");
  EXPECT_EQ(pprof.exit_code, 0) << pprof.err;
  EXPECT_TRUE(std::filesystem::exists(dir.path("profile.pb")));
  EXPECT_EQ(csv.exit_code, 2);
  if (::access("/usr/bin/go", X_OK) != 0) {
    GTEST_SKIP() << "no go on this machine (golang-go): its pprof was not asked";
  }
  Subprocess top({"/usr/bin/go", "tool", "pprof", "-top", "-sample_index=inuse_space",
                  dir.path("profile.pb")});
  EXPECT_EQ(top.wait(), 0) << top.errors();
  EXPECT_THAT(top.output(), HasSubstr("Type: inuse_space"));
  EXPECT_THAT(top.output(), HasSubstr("hold_at_start"));
  EXPECT_THAT(top.output(), HasSubstr("leak_here"));
}

// The line that leaks, through two call stacks.
TEST(ProfileCommand, AddsUpTheStacksOfALine) {
  const Output output = profile({"--json", "--mode", "exact"}, {"--two-ways", "1"});

  const std::size_t told = output.err.find('{');  // after notes of ours, such as on limits
  ASSERT_NE(told, std::string::npos) << output.err;
  const json truth = json::parse(output.err.substr(told, output.err.find('\n', told) - told));
  const json report = json::parse(output.out);
  const json& line = report.at("lines").at(0);
  EXPECT_EQ(line.at("line"), truth.at("line")) << line.dump(1);
  EXPECT_EQ(line.at("sites").size(), 2U);
  EXPECT_NEAR(line.at("growth_bytes_per_step").get<double>(), kLeakPerStep, 0.1 * kLeakPerStep);
  EXPECT_LT(report.at("sites").at(0).at("growth_bytes_per_step").get<double>(), 0.8 * kLeakPerStep);
}

TEST(ProfileCommand, RefusesAProgramThatAddressSanitizerWouldEnd) {
  const std::string program = victim_path("traced_with_asan");
  if (::access(program.c_str(), X_OK) != 0) {
    GTEST_SKIP() << "only gcc links AddressSanitizer as a library";
  }

  const Output refused = run_tool({"profile", "--", program});

  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr("is built with AddressSanitizer"));
  EXPECT_THAT(refused.err, HasSubstr("profile a build without -fsanitize=address"));
}

// What runs on after the report is left alone, and so is all that it starts.
TEST(ProfileCommand, TracesNothingThatStartsAfterItsEnd) {
  const TempTree dir;
  const Output output = run_tool(
      {"profile", "--json", "--interval", "100ms", "--duration", "1s", "--", "/bin/sh", "-c",
       "sleep 2; LC_ALL=C /bin/ls $(dirname $(echo $TIDEMARK_TRACE | cut -d: -f6)) > " +
           dir.path("folders") + "; echo $TIDEMARK_TRACE | cut -d: -f6 > " + dir.path("folder") +
           "; /bin/true; (exec /bin/true); grep -c libtidemark_tracer /proc/self/maps; exit 5"});

  EXPECT_EQ(output.exit_code, 5);
  EXPECT_THAT(output.err, Not(HasSubstr("is not traced"))) << output.err;
  const std::string folder = *read_file(dir.path("folder"));
  const std::string name = folder.substr(folder.rfind('/') + 1);
  ASSERT_THAT(name, StartsWith("trace-"));
  EXPECT_THAT(*read_file(dir.path("folders")), Not(HasSubstr(name)));
}

// The allocator keeps the pages of what was freed.
TEST(ProfileCommand, NamesTheAllocatorWhenFreedMemoryStays) {
  const Output output = run_tool({"profile", "--json", "--interval", "100ms", "--",
                                  victim_path("freed_but_resident"), "--step-ms", "20"});

  const json report = json::parse(output.out);
  const json& process = report.at("target").at("processes").at(0);
  const double footprint = process.at("growth").at("footprint_bytes");
  EXPECT_GT(process.at("growth").at("slack_bytes").get<double>(), 0.6 * footprint)
      << process.dump(1);
}

// The file of the tracer is in the process, and is not its memory.
TEST(ProfileCommand, DoesNotCountTheTracerInTheFootprint) {
  const Output output = profile({"--json", "--mode", "exact"}, {"--count", "60"});

  const json report = json::parse(output.out);
  EXPECT_GT(report.at("coverage").at("tracer_bytes").get<double>(), 100'000.0);
  const json& now = report.at("target").at("processes").at(0).at("now");
  EXPECT_LT(now.at("shared_bytes").get<double>(), 64'000.0) << now.dump(1);
}

TEST(ProfileCommand, AddsUpWhatChildrenHold) {
  const Output output = profile({"--json", "--mode", "exact"}, {"--children", "2"});

  const json report = json::parse(output.out);
  EXPECT_EQ(report.at("target").at("processes").size(), 3U) << report.dump(1);
  double live_bytes = 0.0;
  std::set<int> pids;
  for (const json& site : report.at("sites")) {  // one of the parent, and one of its children
    if (frame_named(site, "leak_here") != nullptr) {
      live_bytes += site.at("live_bytes").get<double>();
      pids.insert(site.at("pids").begin(), site.at("pids").end());
    }
  }
  EXPECT_EQ(pids.size(), 3U);
  EXPECT_NEAR(live_bytes, 300.0 * kLeakPerStep, 6.0 * kLeakPerStep);
}

TEST(ProfileCommand, EndsWhenItWasToldTo) {
  const Output output =
      profile({"--json", "--mode", "exact", "--duration", "1s"}, {"--count", "150"});

  EXPECT_EQ(output.exit_code, 7);
  const json report = json::parse(output.out);
  EXPECT_LT(report.at("duration_s").get<double>(), 2.5);
  EXPECT_NE(frame_named(report.at("sites").at(0), "leak_here"), nullptr);
}

TEST(ProfileCommand, LeavesNoFilesBehind) {
  const TempTree dir;

  run_tool({"profile", "--json", "--", "/bin/sh", "-c",
            "folder=$(echo $TIDEMARK_TRACE | cut -d: -f6); ls $folder > " + dir.path("files") +
                "; printf %s $folder > " + dir.path("folder")});

  const std::string folder = *read_file(dir.path("folder"));
  ASSERT_THAT(folder, HasSubstr("/trace-"));
  EXPECT_THAT(*read_file(dir.path("files")), HasSubstr(".trace"));  // of the shell
  EXPECT_FALSE(std::filesystem::exists(folder)) << folder;
}

bool wait_for(const std::string& path) {
  for (int i = 0; i < 400 && !std::filesystem::exists(path); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return std::filesystem::exists(path);
}

// What the job starts from then on leaves nothing that somebody would have to remove.
TEST(ProfileCommand, ItsJobLeavesNoFilesOnceItWasKilled) {
  const TempTree dir;
  Subprocess tool(
      {tests::tool_path(), "profile", "--", "/bin/bash", "-c",
       "cd " + dir.path() +
           "; folder=$(echo $TIDEMARK_TRACE | cut -d: -f6); echo -n $folder > name; " +
           "mv name folder; for i in {1..600}; do [ -e go ] && break; sleep 0.05; done; " +
           "before=$(ls $folder | wc -l); " + "for i in {1..30}; do /bin/true; (:); done; " +
           "echo $before $(ls $folder | wc -l) > count; mv count counted"});
  ASSERT_TRUE(wait_for(dir.path("folder")));
  const std::string folder = *read_file(dir.path("folder"));
  ASSERT_THAT(folder, HasSubstr("/trace-"));

  tool.signal(SIGKILL);
  tool.close_output();
  siginfo_t ended = {};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(tool.pid()), &ended, WEXITED | WNOWAIT), 0);
  dir.write("go", "");
  ASSERT_TRUE(wait_for(dir.path("counted")));

  std::istringstream counted(*read_file(dir.path("counted")));
  int before = -1;
  int after = -2;
  counted >> before >> after;
  EXPECT_EQ(after, before);
  std::filesystem::remove_all(folder);
}

// A port that takes connections, and says nothing.
TEST(ProfileCommand, DoesNotWaitForAServerOfDebugInformationThatIsSilent) {
  if (::dlopen("libdebuginfod.so.1", RTLD_LAZY) == nullptr) {
    GTEST_SKIP() << "libdebuginfod is not installed";
  }
  const Fd listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(listening.get(), raw, size), 0);
  ASSERT_EQ(::listen(listening.get(), 8), 0);
  ASSERT_EQ(::getsockname(listening.get(), raw, &size), 0);
  const TempTree cache;
  const TempTree dir;
  Subprocess strip({"strip", "-o", dir.path("job"), victim_path("leak_by_line")});
  ASSERT_EQ(strip.wait(), 0) << strip.errors();
  const auto begin = std::chrono::steady_clock::now();

  Subprocess tool({"/usr/bin/env", "DEBUGINFOD_CACHE_PATH=" + cache.path(),
                   fmt::format("DEBUGINFOD_URLS=http://127.0.0.1:{}", ntohs(address.sin_port)),
                   TIDEMARK_BINARY_DIR "/bin/tidemark", "profile", "--json", "--mode", "exact",
                   "--", dir.path("job"), "--count", "20"});
  const int status = tool.wait();

  EXPECT_EQ(status, 7) << tool.errors();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  const json report = json::parse(tool.output());
  EXPECT_THAT(report.at("coverage").at("problems").dump(),
              HasSubstr("debuginfod server does not answer"));
}

TEST(ProfileCommand, OffersNoTargetThatItCannotTrace) {
  const Output help = run_tool({"profile", "--help"});

  EXPECT_THAT(help.out, Not(HasSubstr("--system")));
  EXPECT_THAT(help.out, HasSubstr("--pid"));
  EXPECT_THAT(help.out, HasSubstr("lines are of Python, and of native code"));
  const std::string pid = std::to_string(::getpid());
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"profile"},
                                             {"profile", "--system"},
                                             {"profile", "--all", "--", "/bin/true"},
                                             {"profile", "--detach", "many"},
                                             {"profile", "--detach", pid, "--pid", pid},
                                             {"profile", "--pid", pid, "--", "/bin/true"}}) {
    const Output output = run_tool(arguments);
    EXPECT_EQ(output.exit_code, 2) << testing::PrintToString(arguments) << output.err;
    EXPECT_THAT(output.err, HasSubstr("hint: see tidemark profile --help"));
  }
}

TEST(ProfileCommand, SaysWhyThereIsNothingInARecordingWithoutSites) {
  const TempTree dir;
  dir.write("run.csv", "time_s,rss_mb\n0,1\n1,2\n");

  const Output output = run_tool({"profile", dir.path("run.csv")});

  EXPECT_EQ(output.exit_code, 3);
  EXPECT_THAT(output.err, HasSubstr("has no allocation sites"));
}

TEST(ProfileCommand, PassesOnThatACommandCannotStart) {
  const Output output = run_tool({"profile", "--", "/no/such/program"});

  EXPECT_EQ(output.exit_code, 3);
  EXPECT_THAT(output.err, HasSubstr("cannot start /no/such/program"));
}

// Preloaded and asleep: woken from outside, then put to sleep again. A neighbour in the same folder
// sleeps on.
TEST(ProfileCommand, WakesATracerThatSleepsInAProcess) {
  const std::string base = fmt::format("/dev/shm/tidemark-{}", ::geteuid());
  ::mkdir(base.c_str(), 0700);
  const std::string folder = fmt::format("{}/asleep-{}", base, ::getpid());
  ASSERT_EQ(::mkdir(folder.c_str(), 0700), 0);
  const std::string tracer = TIDEMARK_BINARY_DIR "/lib/libtidemark_tracer.so";
  Subprocess victim({"/usr/bin/env", "LD_PRELOAD=" + tracer,
                     fmt::format("TIDEMARK_TRACE=1:dormant:524288:1073741824:f:{}", folder),
                     victim_path("leak_by_line"), "--count", "400"});
  Subprocess neighbour({"/usr/bin/env", "LD_PRELOAD=" + tracer,
                        fmt::format("TIDEMARK_TRACE=1:dormant:524288:1073741824:f:{}", folder),
                        victim_path("leak_by_line"), "--count", "400"});
  victim.read_until("\n");
  neighbour.read_until("\n");

  const Output output =
      run_tool({"profile", "--pid", std::to_string(victim.pid()), "--json", "--mode", "exact",
                "--interval", "100ms", "--duration", "2s", "--warmup", "20steps"});
  std::vector<std::optional<wire::Mode>> modes;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".trace") {
      modes.push_back(mode_in(entry.path()));
    }
  }
  std::filesystem::remove_all(folder);

  EXPECT_EQ(output.exit_code, 0) << output.err;
  const json report = json::parse(output.out);
  ASSERT_THAT(report.at("sites"), Not(IsEmpty())) << report.dump(1);
  EXPECT_NE(frame_named(report.at("sites").at(0), "leak_here"), nullptr);
  EXPECT_EQ(report.at("target").at("traced"), 1);
  EXPECT_THAT(modes, ElementsAre(wire::Mode::kDormant, wire::Mode::kDormant));
}

// Nor for somebody who only looks on.
TEST(ProfileCommand, LeavesTheTracerOutOfWhatTheMonitorSees) {
  const std::string base = fmt::format("/dev/shm/tidemark-{}", ::geteuid());
  ::mkdir(base.c_str(), 0700);
  const std::string folder = fmt::format("{}/traced-{}", base, ::getpid());
  ASSERT_EQ(::mkdir(folder.c_str(), 0700), 0);
  const std::string tracer = TIDEMARK_BINARY_DIR "/lib/libtidemark_tracer.so";
  Subprocess victim({"/usr/bin/env", "LD_PRELOAD=" + tracer,
                     fmt::format("TIDEMARK_TRACE=1:exact:0:1073741824:f:{}", folder),
                     victim_path("leak_by_line"), "--count", "400"});
  victim.read_until("\n");
  std::uint64_t trace_bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    trace_bytes += entry.file_size();
  }

  const Output output = run_tool({"monitor", "--json", "--interval", "200ms", "--duration", "1s",
                                  "--pid", std::to_string(victim.pid())});
  const std::string status = *read_file(fmt::format("/proc/{}/status", victim.pid()));
  std::filesystem::remove_all(folder);

  EXPECT_GT(trace_bytes, 100'000U);
  EXPECT_THAT(status, Not(HasSubstr("RssShmem:\t       0 kB")));
  const auto ticks = tests::of_kind(tests::json_lines(output.out), "tick");
  ASSERT_THAT(ticks, Not(IsEmpty()));
  for (const json& tick : ticks) {
    const json& process = tick.at("processes").at(0);
    EXPECT_LT(process.at("rss_shmem_bytes").get<double>(), 16'384.0) << process.dump(1);
  }
}

}  // namespace
}  // namespace tidemark
