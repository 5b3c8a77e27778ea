// SPDX-License-Identifier: Apache-2.0
// `tidemark profile --pid` on every version of Python that is on this machine.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/io.h"
#include "profiler/collect/preload.h"
#include "profiler/inject/attach.h"
#include "profiler/inject/traced_thread.h"
#include "profiler/reader/trace_directory.h"
#include "tests/integration/monitor/command_output.h"
#include "tests/integration/profile/python_matrix.h"
#include "tests/support/temp_tree.h"

namespace tidemark {
namespace {

using nlohmann::json;
using tests::Python;
using tests::Subprocess;

// Whether the text comes to stand in a file.
bool wait_for(const std::string& path, std::string_view text) {
  for (int i = 0; i < 600; ++i) {
    const auto log = read_file(path);
    if (log && log->find(text) != std::string::npos) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

// Attaches behind the first step of a command that goes on for long. A machine that stands still
// for a while leaves too few samples to tell what grows: then once more, and longer.
json attach(const std::vector<std::string>& command, const std::vector<std::string>& options,
            std::size_t growing_lines) {
  constexpr int kMostRuns = 4;
  json report;
  for (int run = 0; run < kMostRuns; ++run) {
    const tests::TempTree folder;
    const std::string log = folder.path("log");
    const Subprocess script(
        {"/bin/sh", "-c", fmt::format("exec {} 100000 > {}", fmt::join(command, " "), log)});
    if (!wait_for(log, "Step 1\n")) {
      ADD_FAILURE() << "the script makes no steps";
      return report;
    }
    std::vector<std::string> arguments{"profile",
                                       "--pid",
                                       std::to_string(script.pid()),
                                       "--json",
                                       "--top",
                                       "20",
                                       "--interval",
                                       "50ms",
                                       "--warmup",
                                       "5steps",
                                       "--log-file",
                                       log,
                                       "--duration",
                                       run == 0 ? "2s" : "6s"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const tests::Output output = tests::run_tool(arguments);
    report = json::parse(output.out, nullptr, false);
    if (report.is_discarded()) {
      ADD_FAILURE() << output.err;
      return report;
    }
    const json& lines = report.at("lines");
    const auto growing = std::count_if(lines.begin(), lines.end(), [](const json& line) {
      return line.at("growth_bytes") > 0 && line.at("growth_bytes_per_step").is_number();
    });
    if (static_cast<std::size_t>(growing) >= growing_lines) {
      break;
    }
  }
  return report;
}

json attach_exactly(const std::vector<std::string>& command, std::size_t growing_lines) {
  return attach(command, {"--mode", "exact"}, growing_lines);
}

class AttachedPython : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Each, AttachedPython, testing::Range(9, 15), [](const auto& version) {
  return "Python3_" + std::to_string(version.param);
});

TEST_P(AttachedPython, HasItsLeakingLinesFirst) {
  std::vector<Python> found = tests::pythons();
  std::erase_if(found, [](const Python& python) { return python.minor != GetParam(); });
  if (found.empty()) {
    GTEST_SKIP() << "no Python 3." << GetParam() << " on this machine";
  }
  for (const Python& python : found) {
    tests::expect_leaking_lines(python.path, attach_exactly);
  }
}

// Each in a block of its own, which the interpreter's allocator has made.
TEST_P(AttachedPython, HasSmallObjectsOneByOne) {
  std::vector<Python> found = tests::pythons();
  std::erase_if(found, [](const Python& python) { return python.minor != GetParam(); });
  if (found.empty()) {
    GTEST_SKIP() << "no Python 3." << GetParam() << " on this machine";
  }
  for (const Python& python : found) {
    Subprocess script({python.path, tests::script_path("small_objects.py"), "300"});
    script.read_until("Step 1\n");

    const tests::Output output =
        tests::run_tool({"profile", "--pid", std::to_string(script.pid()), "--json", "--interval",
                         "100ms", "--mode", "exact", "--python-objects", "--duration", "2s"});

    const json report = json::parse(output.out, nullptr, false);
    ASSERT_FALSE(report.is_discarded()) << output.err;
    const json& line = report.at("lines").at(0);
    EXPECT_EQ(line.at("line"), tests::leaking_line("small_objects.py"))
        << python.path << line.dump(1);
    EXPECT_EQ(line.at("python_arena"), false) << line.dump(1);
    EXPECT_EQ(line.at("kind"), "heap") << line.dump(1);
    EXPECT_GT(line.at("live_blocks"), 6000) << line.dump(1);
    const auto hooked = inject::Attachment::find(script.pid());
    ASSERT_TRUE(hooked) << hooked.error().what;
    EXPECT_EQ(*hooked->count_hooked(), 0U) << python.path;
    EXPECT_THAT(script.read_until("Step 300\n"), testing::HasSubstr("Step 300"));
    EXPECT_EQ(script.wait(), 0) << script.errors();
  }
}

// In locks, which end with a jump to a function of libc without a name.
TEST_P(AttachedPython, IsReachedWhileAllItsThreadsWait) {
  std::vector<Python> found = tests::pythons();
  std::erase_if(found, [](const Python& python) { return python.minor != GetParam(); });
  if (found.empty()) {
    GTEST_SKIP() << "no Python 3." << GetParam() << " on this machine";
  }
  for (const Python& python : found) {
    Subprocess script({python.path, "-c",
                       "import threading\n"
                       "threading.Thread(target=threading.Event().wait).start()\n"
                       "print('ready', flush=True)\n"
                       "threading.Event().wait(60)\n"});
    script.read_until("ready\n");

    const tests::Output output =
        tests::run_tool({"profile", "--pid", std::to_string(script.pid()), "--json", "--interval",
                         "100ms", "--duration", "300ms"});

    EXPECT_THAT(output.err, testing::HasSubstr("attached to pid")) << python.path;
    EXPECT_TRUE(inject::waits_in_system_call(script.pid(), script.pid())) << python.path;
    script.signal(SIGKILL);
    script.wait();
  }
}

// Where no thread comes to a place where it may load a library, the interpreter is asked to.
TEST_P(AttachedPython, LoadsTheTracerItselfWhereItCan) {
  constexpr int kFirstThatCan = 14;
  std::vector<Python> found = tests::pythons();
  std::erase_if(found, [](const Python& python) { return python.minor != GetParam(); });
  if (found.empty()) {
    GTEST_SKIP() << "no Python 3." << GetParam() << " on this machine";
  }
  Subprocess script({found.front().path, tests::script_path("small_objects.py"), "200"});
  script.read_until("Step 1\n");
  auto folder = reader::TraceDirectory::create_for(script.pid());
  ASSERT_TRUE(folder) << folder.error().what;
  inject::AttachOptions options;
  options.library = *collect::find_tracer();
  options.request = collect::trace_request(collect::TraceOptions(), folder->seen_as());
  options.folder = folder->path();
  options.folder_seen_as = folder->seen_as();
  options.timeout_ns = 0;  // no thread is found in this time

  const auto attached = inject::Attachment::attach(script.pid(), options);

  if (GetParam() < kFirstThatCan) {
    ASSERT_FALSE(attached);
    EXPECT_THAT(attached.error().what,
                testing::AllOf(testing::HasSubstr("came to a place where it may load a library"),
                               testing::HasSubstr("only Python 3.14 can be asked to load it")));
  } else {
    ASSERT_TRUE(attached) << attached.error().what;
    EXPECT_THAT(attached->figures().detour, testing::HasSubstr("came to a place"));
    EXPECT_TRUE(reader::has_trace_of(folder->path(), ::geteuid(), script.pid()));
  }
  EXPECT_FALSE(std::filesystem::exists(folder->path() + "/attach.py"));
  EXPECT_THAT(script.read_until("Step 200\n"), testing::HasSubstr("Step 200"));
  EXPECT_EQ(script.wait(), 0) << script.errors();
}

// Its interpreter is a link, and its standard library is elsewhere.
TEST(AttachedVenv, HasItsLeakingLinesFirst) {
  const std::vector<Python> found = tests::pythons();
  if (found.empty()) {
    GTEST_SKIP() << "no Python 3.* on this machine";
  }
  const tests::TempTree folder;
  Subprocess made({found.back().path, "-m", "venv", "--without-pip", folder.path("venv")});
  ASSERT_EQ(made.wait(), 0) << made.errors();

  tests::expect_leaking_lines(folder.path("venv/bin/python"), attach_exactly);
}

json attach_to_training(const std::string& workers, std::vector<std::string> options) {
  options.insert(options.end(), {"--sample-every", "64KiB"});
  return attach({"/usr/bin/python3", tests::script_path("torch_loader.py"), workers}, options, 1);
}

TEST(AttachedTraining, HasTheCollatorThatKeepsBatchesFirst) {
  if (!tests::has_torch()) {
    GTEST_SKIP() << "/usr/bin/python3 has no torch";
  }

  tests::expect_collator_first(attach_to_training("0", {}), 0);
}

TEST(AttachedTraining, HasTheCollatorThatKeepsBatchesInWorkersFirst) {
  if (!tests::has_torch()) {
    GTEST_SKIP() << "/usr/bin/python3 has no torch";
  }

  tests::expect_collator_first(attach_to_training("2", {"--role", "dataloader_worker"}), 2);
}

}  // namespace
}  // namespace tidemark
