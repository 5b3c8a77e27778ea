// SPDX-License-Identifier: Apache-2.0
// What `tidemark guard` does to jobs that behave, and what it leaves alone.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/guard/guard_run.h"
#include "tests/integration/monitor/command_output.h"
#include "tests/support/temp_tree.h"

namespace tidemark {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using tests::content_of;
using tests::count_of;
using tests::guard;
using tests::Guarded;
using tests::guarded_job;
using tests::run_guard;
using tests::Subprocess;
using tests::TempTree;

const std::vector<std::string> kTight = {"--limit", "150MiB",     "--keep-free",
                                         "30MiB",   "--interval", "100ms"};

std::vector<std::string> tight(std::vector<std::string> more) {
  more.insert(more.begin(), kTight.begin(), kTight.end());
  return more;
}

TEST(Guard, StopsAJobWithACheckpointBeforeItsLimit) {
  const TempTree dir;
  const std::string checkpoint = dir.path("checkpoint");

  const Guarded run = run_guard(guard(tight({"-o", dir.path("run.tidemark")}),
                                      guarded_job({"--leak-mb", "1", "--count", "100000",
                                                   "--step-ms", "5", "--checkpoint", checkpoint})));

  EXPECT_EQ(run.exit_code, 1) << run.log;
  EXPECT_THAT(run.out, HasSubstr("stopped after step"));
  EXPECT_NE(content_of(checkpoint), "");
  EXPECT_THAT(run.log,
              AllOf(HasSubstr("WARNING: memory runs short"), HasSubstr("STOP: sent SIGTERM"),
                    HasSubstr("free of 150 MiB (--limit)"), Not(HasSubstr("KILL:"))));
  const auto lines = tests::run_tool({"export", dir.path("run.tidemark"), "--format", "jsonl"});
  EXPECT_THAT(lines.out, AllOf(HasSubstr("\"guard\""), HasSubstr("stop: sent SIGTERM to pid")));
}

TEST(Guard, PassesOnTheStatusOfACommandThatEndsByItself) {
  EXPECT_EQ(run_guard(guard({}, {"/bin/sh", "-c", "exit 7"})).exit_code, 7);
  EXPECT_EQ(run_guard(guard({}, {"/bin/true"})).exit_code, 0);
  EXPECT_EQ(run_guard(guard({}, {"/nowhere/train"})).exit_code, 3);
}

TEST(Guard, SendsTheSignalThatIsAskedForToTheTrainerNotToTheWrapper) {
  const TempTree dir;
  // The wrapper would write down a signal that it gets.
  const std::string script = "trap 'echo wrapper got it' TERM INT USR1; \"$@\"; echo status $?";
  std::vector<std::string> command{"/bin/sh", "-c", script, "sh"};
  for (const std::string& word :
       guarded_job({"--leak-mb", "1", "--count", "100000", "--step-ms", "5"})) {
    command.push_back(word);
  }

  const Guarded run = run_guard(guard(tight({"--signal", "USR1"}), command));

  EXPECT_EQ(run.exit_code, 1) << run.log;
  EXPECT_THAT(run.out, AllOf(HasSubstr("status 138"), Not(HasSubstr("wrapper got it"))));
  EXPECT_THAT(run.log, HasSubstr("sent SIGUSR1 to pid"));
}

TEST(Guard, LeavesAWarmUpToNinetyPercentOfTheLimitAlone) {
  const Guarded run =
      run_guard(guard({"--limit", "200MiB", "--interval", "100ms"},
                      guarded_job({"--peak-mb", "178", "--count", "120", "--step-ms", "20"})));

  EXPECT_EQ(run.exit_code, 0) << run.log;
  EXPECT_THAT(run.out, HasSubstr("done after step 120"));
  EXPECT_THAT(run.log, Not(HasSubstr("STOP")));
}

TEST(Guard, LeavesSpikesAlone) {
  const Guarded run =
      run_guard(guard({"--limit", "200MiB", "--interval", "100ms"},
                      guarded_job({"--spike-mb", "160", "--count", "60", "--step-ms", "20"})));

  EXPECT_EQ(run.exit_code, 0) << run.log;
  EXPECT_THAT(run.log, Not(HasSubstr("STOP")));
}

TEST(Guard, LeavesWhatTheShellHadStartedBeforeAlone) {
  const TempTree dir;

  const Guarded run = run_guard(tests::after_a_neighbour(
      dir.path("neighbour"),
      guard(tight({"--grace", "200ms"}), guarded_job({"--leak-mb", "1", "--count", "100000",
                                                      "--step-ms", "5", "--deaf", "1"}))));

  EXPECT_THAT(run.log, HasSubstr("KILL: ")) << run.log;
  EXPECT_TRUE(tests::end_neighbour(dir.path("neighbour"))) << run.log;
}

TEST(Guard, GuardsAJobThatOthersStarted) {
  const TempTree dir;
  Subprocess job(guarded_job({"--leak-mb", "1", "--count", "100000", "--step-ms", "10",
                              "--checkpoint", dir.path("checkpoint")}));
  job.read_until("begins");

  // Far enough away that it is not there before the guard is.
  const Guarded run = run_guard(guard({"--limit", "450MiB", "--keep-free", "30MiB", "--interval",
                                       "100ms", "--pid", std::to_string(job.pid())}));

  EXPECT_EQ(run.exit_code, 1) << run.log;
  EXPECT_THAT(run.log, HasSubstr("STOP: sent SIGTERM to pid " + std::to_string(job.pid())));
  EXPECT_EQ(job.wait(), 0);
  EXPECT_THAT(job.output(), HasSubstr("stopped after step"));
}

TEST(Guard, ADryRunSaysWhatItWouldDoAndTouchesNobody) {
  const Guarded run =
      run_guard(guard(tight({"--dry-run", "--grace", "200ms", "--restart"}),
                      guarded_job({"--leak-mb", "1", "--count", "220", "--step-ms", "5"})));

  EXPECT_EQ(run.exit_code, 0) << run.log;
  EXPECT_THAT(run.out, HasSubstr("done after step 220"));
  EXPECT_THAT(run.log, AllOf(HasSubstr("STOP: would send SIGTERM"),
                             HasSubstr("KILL: would kill the whole tree")));
}

TEST(Guard, RunsTheNotificationWithWhatHappenedAndWithoutTheJob) {
  const TempTree dir;
  const std::string notes = dir.path("notes");
  const Guarded run = run_guard(guard(
      tight({"--notify", "echo \"$TIDEMARK_EVENT/$TIDEMARK_REASON/$TIDEMARK_LIMIT_SOURCE\" >> " +
                             notes + "; sleep 0.2; echo end >> " + notes}),
      guarded_job({"--leak-mb", "1", "--count", "100000", "--step-ms", "5"})));

  EXPECT_EQ(run.exit_code, 1) << run.log;
  for (int i = 0; i < 100 && count_of(content_of(notes), "end") < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // nobody waits for it
  }
  EXPECT_THAT(content_of(notes), AllOf(HasSubstr("warn/headroom/--limit\n"),
                                       HasSubstr("stop/headroom/--limit\n"), HasSubstr("end")));
}

TEST(Guard, ActsAndStartsAgainAlthoughNobodyReadsItsLog) {
  const TempTree dir;
  const std::string fifo = dir.path("log");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const Fd reader(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const Fd writer(::open(fifo.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  const std::string junk(4096, '.');
  while (::write(writer.get(), junk.data(), junk.size()) > 0) {
  }
  std::vector<std::string> argv{"/bin/sh", "-c", "exec 2> " + fifo + "; exec \"$@\"", "sh"};
  for (const std::string& word :
       guard(tight({"--restart"}), guarded_job({"--leak-mb", "1", "--count", "170", "--step-ms",
                                                "5", "--checkpoint", dir.path("checkpoint")}))) {
    argv.push_back(word);
  }

  Subprocess process(argv);

  EXPECT_THAT(process.read_until("stopped after step"), HasSubstr("stopped after step"));
  EXPECT_THAT(process.read_until("done after step 170"), HasSubstr("done after step 170"));
}

TEST(Guard, StopsALeakByItsForecastLongBeforeTheLimit) {
  // 1 GiB at some 40 MB/s: half a minute, where a minute is wanted.
  const Guarded run = run_guard(
      guard({"--limit", "1GiB", "--horizon", "60s", "--warmup", "20steps", "--interval", "50ms"},
            guarded_job(
                {"--leak-mb", "0.4", "--count", "100000", "--step-ms", "10", "--max-mb", "900"})));

  EXPECT_EQ(run.exit_code, 1) << run.log;
  EXPECT_THAT(run.log, AllOf(HasSubstr("STOP: sent SIGTERM"),
                             HasSubstr("it leaks, and reaches the limit in")));
}

TEST(Guard, StopsAJobBeforeItsResourceLimit) {
  std::vector<std::string> command{"/bin/sh", "-c", "ulimit -v 300000; exec \"$@\"", "sh"};
  for (const std::string& word :
       guarded_job({"--leak-mb", "1", "--count", "100000", "--step-ms", "5"})) {
    command.push_back(word);
  }

  const Guarded run = run_guard(guard({"--keep-free", "50MiB", "--interval", "100ms"}, command));

  EXPECT_EQ(run.exit_code, 1) << run.log;
  EXPECT_THAT(run.out, HasSubstr("stopped after step"));
  EXPECT_THAT(run.log, HasSubstr("(RLIMIT_AS of pid"));
}

TEST(Guard, TellsTheServiceManager) {
  const Guarded run = run_guard({"/usr/bin/python3", "-c", R"(
import os, socket, subprocess, sys, tempfile
folder = tempfile.mkdtemp()
path = os.path.join(folder, "notify")
listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
listener.bind(path)
done = subprocess.run([sys.argv[1], "guard", "--interval", "100ms", "--", "sh", "-c",
                       "sleep 0.5; echo socket=$NOTIFY_SOCKET"],
                      env=dict(os.environ, NOTIFY_SOCKET=path))
listener.setblocking(False)
while True:
    try:
        print(listener.recv(4096).decode())
    except BlockingIOError:
        break
os.unlink(path)
os.rmdir(folder)
)",
                                 tests::tool_path()});

  EXPECT_THAT(run.out, AllOf(HasSubstr("READY=1"), HasSubstr("WATCHDOG=1"), HasSubstr("STATUS="),
                             HasSubstr("STOPPING=1"), HasSubstr("socket=\n")));
}

TEST(Guard, RefusesWhatItCannotDo) {
  const auto expect = [](const std::vector<std::string>& options,
                         const std::vector<std::string>& command, int code, const char* text) {
    const Guarded run = run_guard(guard(options, command));
    EXPECT_EQ(run.exit_code, code) << run.log;
    EXPECT_THAT(run.log, HasSubstr(text));
  };
  expect({"--pid", "1", "--restart"}, {}, 2, "--restart needs -- COMMAND");
  expect({"--system"}, {}, 2, "--system");
  expect({}, {}, 2, "say what to guard");
  expect({"--signal", "KILL"}, {"true"}, 2, "--signal is one that a program can catch");
  expect({"--max-restarts", "3"}, {"true"}, 2, "--restart");
  expect({"--keep-free", "900TiB"}, {"true"}, 3, "the job would be stopped at once");
  expect({"--limit", "100MiB", "--keep-free", "100MiB"}, {"true"}, 2,
         "--keep-free has to be less than --limit");
  if (::access("/usr/bin/notify-send", X_OK) != 0) {
    expect({"--desktop"}, {"true"}, 3, "--desktop needs notify-send");
  }
}

}  // namespace
}  // namespace tidemark
