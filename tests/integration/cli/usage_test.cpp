// SPDX-License-Identifier: Apache-2.0
// Command lines that are wrong, or shorter than they might be, as a user types them.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/monitor/command_output.h"
#include "tests/support/temp_tree.h"

namespace tidemark {
namespace {

using testing::HasSubstr;
using testing::Not;
using tests::Output;
using tests::run_tool;
using tests::Subprocess;
using tests::TempTree;

constexpr int kUsage = 2;

// Refused, with exactly this error and hint.
void expect_refused(const std::vector<std::string>& arguments, const std::string& what,
                    const std::string& hint) {
  const Output output = run_tool(arguments);
  EXPECT_EQ(output.exit_code, kUsage) << testing::PrintToString(arguments);
  EXPECT_EQ(output.err, "tidemark: error: " + what + "\nhint: " + hint + "\n");
  EXPECT_EQ(output.out, "");
}

TEST(Usage, AMisspelledCommandIsRecognised) {
  expect_refused({"trak", "--pid", "1"}, "there is no command 'trak'", "did you mean `track`?");
  expect_refused({"moniter"}, "there is no command 'moniter'", "did you mean `monitor`?");
  expect_refused({"zebra"}, "there is no command 'zebra'", "see tidemark --help");
}

TEST(Usage, AMissingCommandIsProposed) {
  const TempTree folder;
  folder.write("run.csv", "time_s,rss_mb\n");
  const std::string file = folder.path("run.csv");
  expect_refused({"27295"}, "there is no command '27295'", "did you mean `tidemark track 27295`?");
  expect_refused({file}, "there is no command '" + file + "'",
                 "did you mean `tidemark track " + file + "`?");
  expect_refused({"sh", "train.sh", "a b"}, "there is no command 'sh'",
                 "did you mean `tidemark track -- sh train.sh 'a b'`?");
  expect_refused({"--", "sh", "train.sh"}, "say what to do with the command",
                 "did you mean `tidemark track -- sh train.sh`?");
}

TEST(Usage, AMisspelledOptionIsRecognised) {
  expect_refused({"track", "--pid", "1", "--durtion", "5min"},
                 "tidemark track has no option --durtion", "did you mean `--duration`?");
  expect_refused({"monitor", "--find-trainig"}, "tidemark monitor has no option --find-trainig",
                 "did you mean `--find-training`?");
  expect_refused({"guard", "--pid", "1", "--zebra=3"}, "tidemark guard has no option --zebra",
                 "see tidemark guard --help");
  expect_refused({"--verison"}, "tidemark has no option --verison", "did you mean `--version`?");
  expect_refused({"--json", "track", "x.csv"}, "'--json' has to stand after track",
                 "see tidemark track --help");
}

TEST(Usage, WhatIsNotExpectedIsListedInItsOrder) {
  expect_refused({"find", "first", "second", "third"}, "not expected: first second third",
                 "see tidemark find --help");
}

TEST(Usage, AForgottenDoubleDashIsRecognised) {
  expect_refused({"track", "sh", "train.sh", "--lr", "3"}, "put -- before the command to start",
                 "tidemark track -- sh train.sh --lr 3");
  expect_refused({"monitor", "--interval", "2s", "--plain", "sh", "-c", "a; b"},
                 "put -- before the command to start",
                 "tidemark monitor --interval 2s --plain -- sh -c 'a; b'");
  expect_refused({"guard", "--limit=4GiB", "sh", "x.sh", "--limit", "3"},
                 "put -- before the command to start",
                 "tidemark guard --limit=4GiB -- sh x.sh --limit 3");
  expect_refused({"profile", "/bin/sh", "x.sh"}, "put -- before the command to start",
                 "tidemark profile -- /bin/sh x.sh");
  expect_refused({"check", "--max-growth", "1MiB/step", "sh", "x.sh", "--steps", "3"},
                 "put -- before the command to start",
                 "tidemark check --max-growth 1MiB/step -- sh x.sh --steps 3");
}

TEST(Usage, AWordIsTheNameOfACheckWhereChecksAreDescribed) {
  const TempTree folder;
  folder.write("checks.json",
               R"({"schema": 1, "checks": [{"name": "true", "command": ["true"]}]})");

  const auto known = run_tool({"check", "--config", folder.path("checks.json"), "true"});
  const auto unknown = run_tool({"check", "--config", folder.path("checks.json"), "sh", "x.sh"});

  EXPECT_THAT(known.err, HasSubstr("check true: true"));
  EXPECT_THAT(unknown.err, HasSubstr("has no check 'sh', only true"));
  EXPECT_THAT(unknown.err, HasSubstr("tidemark check -- sh x.sh"));
}

TEST(Usage, ARecordingThatIsMarkedExecutableIsNoCommand) {
  const TempTree folder;
  folder.write("run.csv", "time_s,rss_mb\n0,100\n1,100\n2,100\n");
  ASSERT_EQ(::chmod(folder.path("run.csv").c_str(), 0755), 0);

  EXPECT_THAT(run_tool({"track", folder.path("run.csv")}).err, Not(HasSubstr("put --")));
}

TEST(Usage, ANumberIsAProcess) {
  const Subprocess target({"/bin/sleep", "60"});
  const std::string pid = std::to_string(target.pid());
  for (const std::string command : {"track", "monitor", "guard"}) {
    std::vector<std::string> arguments{command, pid, "--duration", "200ms", "--interval", "50ms"};
    if (command == "guard") {
      arguments.emplace_back("--dry-run");
    }
    const Output output = run_tool(arguments);
    EXPECT_NE(output.exit_code, kUsage) << command << output.err;
    EXPECT_THAT(output.err, Not(HasSubstr("error"))) << command;
  }
  EXPECT_THAT(run_tool({"profile", pid, "--duration", "200ms"}).err,
              Not(HasSubstr("No such file")));
}

TEST(Usage, HelpIsACommandToo) {
  const Output of_track = run_tool({"help", "track"});
  EXPECT_EQ(of_track.exit_code, 0) << of_track.err;
  EXPECT_EQ(of_track.out, run_tool({"track", "--help"}).out);
  EXPECT_EQ(run_tool({"help"}).out, run_tool({"--help"}).out);
}

TEST(Usage, WhatHasNoMemoryIsNothingToWatch) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::_exit(0);
  }
  siginfo_t ended{};
  ::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT);
  for (const std::string command : {"track", "monitor", "guard", "owners"}) {
    const Output output = run_tool({command, std::to_string(pid), "--duration", "10s"});
    EXPECT_EQ(output.exit_code, 3) << command;
    EXPECT_THAT(output.err, HasSubstr("process " + std::to_string(pid) + " has exited")) << command;
  }
  ::waitpid(pid, nullptr, 0);

  if (Subprocess({"grep", "-q", "kthreadd", "/proc/2/comm"}).wait() == 0) {
    const Output output = run_tool({"guard", "2"});
    EXPECT_EQ(output.exit_code, 3);
    EXPECT_THAT(output.err, HasSubstr("2 is a kernel thread, not a program"));
  }
}

TEST(Usage, TheOptionThatARecordingHasNoUseForIsNamed) {
  expect_refused({"track", "x.csv", "--duration", "5s"},
                 "--duration is for watching, not for a recording", "see tidemark track --help");
  expect_refused({"owners", "x.tidemark", "--no-redact"},
                 "--no-redact is for a job, not for a recording", "see tidemark owners --help");
  expect_refused({"monitor", "--replay", "x.csv", "--log-file", "y"},
                 "--replay plays a recording: it takes no --log-file",
                 "see tidemark monitor --help");
}

TEST(Usage, ANumberOutOfItsRangeIsNamedWithIt) {
  expect_refused({"owners", "--looks", "0", "--", "true"},
                 "--looks: '0' is not a number from 1 to 1000", "see tidemark owners --help");
}

TEST(Usage, ALogFileThatIsNotThereIsNoted) {
  const TempTree folder;
  const std::string log = folder.path("none.log");
  const Subprocess target({"/bin/sleep", "60"});
  const auto notes = [&](const std::vector<std::string>& options) {
    std::vector<std::string> arguments{"track",      "--pid", std::to_string(target.pid()),
                                       "--interval", "50ms",  "--duration",
                                       "200ms"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return run_tool(arguments).err;
  };

  EXPECT_THAT(notes({"--log-file", log}),
              HasSubstr("note: --log-file " + log + ": there is no such file"));
  folder.write("none.log", "nothing\n");
  EXPECT_THAT(notes({"--log-file", log}), HasSubstr("note: no steps are recognised in " + log));
  EXPECT_THAT(notes({"--log-file", log, "--step-regex", "x"}),
              HasSubstr("note: --step-regex has found no step in " + log));
  EXPECT_THAT(run_tool({"track", "--step-regex", "off", "--", "true"}).err,
              Not(HasSubstr("--step-regex")));
}

// No file of ours takes their places, and the command has them closed as it would without us.
TEST(Usage, ClosedDescriptorsStayClosed) {
  const auto run = [](const std::string& line) {
    Subprocess shell({"sh", "-c", line, tests::tool_path()});
    return Output{shell.wait(), shell.output(), shell.errors()};
  };

  const std::string asks = "\"$0\" monitor -- sh -c 'test ! -e /proc/self/fd/0'";
  EXPECT_EQ(run(asks + " <&-").exit_code, 0);
  EXPECT_EQ(run(asks + " </dev/null").exit_code, 1);
  const Output no_output =
      run("\"$0\" monitor --json --pid 1 "
          "--duration 100ms --interval 50ms >&-");
  EXPECT_EQ(no_output.exit_code, 3);
  EXPECT_THAT(no_output.err, HasSubstr("Bad file descriptor"));
}

TEST(Usage, WhatIsNoProcessIsNoNumber) {
  const TempTree folder;
  folder.write("run.csv", "time_s,rss_mb\n");
  const Output file = run_tool({"monitor", folder.path("run.csv")});
  EXPECT_EQ(file.exit_code, kUsage);
  EXPECT_THAT(file.err, HasSubstr("is a file, not a process id; tidemark track " +
                                  folder.path("run.csv") + " judges a recording"));
  const Output word = run_tool({"monitor", "no-such-thing"});
  EXPECT_EQ(word.exit_code, kUsage);
  EXPECT_THAT(word.err, HasSubstr("'no-such-thing' is not a process id"));
}

TEST(Usage, ASizeNeedsAUnit) {
  expect_refused({"guard", "--pid", "1", "--limit", "100"},
                 "--limit: '100' has no unit: say 100MiB or 100GiB", "see tidemark guard --help");
  expect_refused({"guard", "--pid", "1", "--keep-free", "2"},
                 "--keep-free: '2' has no unit: say 2MiB or 2GiB", "see tidemark guard --help");
  expect_refused({"profile", "--sample-every", "4096", "--", "sh"},
                 "--sample-every: '4096' has no unit: say 4096MiB or 4096GiB",
                 "see tidemark profile --help");
  expect_refused({"check", "--max-peak", "4", "--", "sh"},
                 "--max-peak: '4' has no unit: say 4MiB or 4GiB", "see tidemark check --help");
  expect_refused({"track", "--pid", "1", "--min-leak", "10/step"},
                 "--min-leak: '10/step' has no unit: say 10KiB/step or 10MiB/step",
                 "see tidemark track --help");
}

TEST(Usage, ADurationNeedsAUnit) {
  expect_refused({"track", "--pid", "1", "--duration", "30"},
                 "--duration: '30' has no unit: say 30s or 30min", "see tidemark track --help");
  expect_refused({"guard", "--pid", "1", "--grace", "30"},
                 "--grace: '30' has no unit: say 30s or 30min", "see tidemark guard --help");
  expect_refused({"track", "--pid", "1", "--warmup", "200"},
                 "--warmup: '200' has no unit: say 200steps, 200s or 200min",
                 "see tidemark track --help");
}

}  // namespace
}  // namespace tidemark
