// SPDX-License-Identifier: Apache-2.0
// `tidemark profile --pid` on trees of processes: which of them get the tracer, and what is left of
// it in them.
#include <signal.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/io.h"
#include "common/text.h"
#include "tests/integration/profile/attach_support.h"

namespace tidemark {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using tests::attach_to;
using tests::hooked_places;
using tests::Output;
using tests::report_of;
using tests::Subprocess;
using tests::TempTree;
using tests::victim_path;

// A root whose two forked children keep memory, on line 5; it prints their pids. With the argument
// "later" it forks one more and starts another program once the tracer is in it, and prints theirs.
constexpr std::string_view kTree =
    "import os, sys, time\n"
    "kept = []\n"
    "def work():\n"
    "    while True:\n"
    "        kept.append(bytearray(300_000))\n"
    "        time.sleep(0.005)\n"
    "def start(work):\n"
    "    pid = os.fork()\n"
    "    if pid == 0:\n"
    "        os.close(0)\n"
    "        work()\n"
    "    return pid\n"
    "print('ready', start(work), start(work), flush=True)\n"
    "if sys.argv[1:] == ['later']:\n"
    "    while 'tidemark_tracer' not in open('/proc/self/maps').read():\n"
    "        time.sleep(0.02)\n"
    "    time.sleep(0.5)\n"
    "    program = [sys.executable, os.path.join(os.path.dirname(__file__), 'train.py')]\n"
    "    print('later', start(work), start(lambda: os.execv(sys.executable, program)), "
    "flush=True)\n"
    "sys.stdin.read()\n"
    "os.killpg(0, 9)\n";
constexpr int kWorkLine = 5;

// The tree, in a process group of its own that ends with it.
class PythonTree {
 public:
  explicit PythonTree(const std::string& argument = "") {
    folder_.write("tree.py", std::string(kTree));
    folder_.write("train.py", std::string(tests::kTraining));
    process_.emplace(std::vector<std::string>{
        "/usr/bin/setsid", "--wait", "/bin/sh", "-c",
        fmt::format("{} --count 1000000 --step-ms 50 </dev/null & /usr/bin/python3 {} {}; true",
                    victim_path("leak_static"), script(), argument)});
    workers_ = tests::pids_in(after("ready"));
  }
  ~PythonTree() {
    process_->close_input();
    process_->wait();
  }
  std::string script() const { return folder_.path("tree.py"); }
  std::string program() const { return folder_.path("train.py"); }
  const std::vector<pid_t>& workers() const { return workers_; }
  // The shell at its root, which has a static program below it as well.
  pid_t shell() const { return parent_of(python()); }
  pid_t python() const { return parent_of(workers_.at(0)); }
  // The rest of the line that begins with this word.
  std::string after(const std::string& word) {
    std::string text = process_->read_until(word);
    const std::size_t at = text.find(word);
    if (text.find('\n', at) == std::string::npos) {
      text = process_->read_until("\n" /* of this line */);
    }
    while (text.find('\n', at) == std::string::npos) {
      process_->read_for(std::chrono::milliseconds(100));
      text = process_->output();
    }
    return text.substr(at, text.find('\n', at) - at);
  }

 private:
  static pid_t parent_of(pid_t pid) {
    const auto status = read_file(fmt::format("/proc/{}/status", pid));
    return status ? std::stoi(status->substr(status->find("PPid:") + 5)) : 0;
  }

  TempTree folder_;
  std::optional<Subprocess> process_;
  std::vector<pid_t> workers_;
};

TEST(AttachTree, TakesThePythonThatAShellRuns) {
  TempTree folder;
  folder.write("plain.py", std::string(tests::kTraining));
  Subprocess shell({"/bin/sh", "-c", "/usr/bin/python3 " + folder.path("plain.py") + "; true"});
  shell.read_until("ready\n");

  const Output output = attach_to(shell.pid());

  EXPECT_THAT(output.err, Not(HasSubstr(fmt::format("attached to pid {} ", shell.pid()))));
  const json report = report_of(output);
  EXPECT_EQ(report.at("lines").at(0).at("file"), folder.path("plain.py")) << output.err;
  EXPECT_EQ(report.at("lines").at(0).at("line"), tests::kTrainingLine);
  EXPECT_GT(report.at("coverage").at("growth_explained_share"), 0.3) << output.out;
  const auto children = read_file(fmt::format("/proc/{0}/task/{0}/children", shell.pid()));
  ::kill(std::stoi(*children), SIGKILL);
}

TEST(AttachTree, AsksWhichOfSeveralProcessesOfAShellIsMeant) {
  PythonTree tree;

  const Output output = attach_to(tree.shell());

  EXPECT_EQ(output.exit_code, 3);
  EXPECT_THAT(output.err, HasSubstr("only runs others: "));
  EXPECT_THAT(output.err, HasSubstr(fmt::format("pid {} ", tree.python())));
  EXPECT_THAT(output.err, HasSubstr("hint: give the process id of one of them, or --all"));
}

// A static program in it, as uv is one, is no reason to give up the rest.
TEST(AttachTree, AllAttachesToAllThatItCan) {
  PythonTree tree;

  const Output output = attach_to(tree.shell(), {"--all"}, "4s");

  const json report = report_of(output);
  EXPECT_THAT(tests::growing_pids(report), IsSupersetOf(tree.workers())) << output.err;
  EXPECT_FALSE(tests::line_at(report, tree.script(), kWorkLine).is_null()) << output.out;
  for (const pid_t pid : {tree.shell(), tree.python(), tree.workers()[0], tree.workers()[1]}) {
    EXPECT_THAT(output.err, HasSubstr(fmt::format("attached to pid {} in ", pid)));
    EXPECT_EQ(hooked_places(pid), 0U) << pid;
  }
  EXPECT_THAT(tests::problems_of(report), HasSubstr("is not traced: process "));
  EXPECT_THAT(tests::problems_of(report), HasSubstr("is statically linked"));
}

// What rests in all of them from the first time is used by the second.
TEST(AttachTree, AllAttachesToAllAgain) {
  PythonTree tree;
  attach_to(tree.shell(), {"--all"}, "1s");

  const Output output = attach_to(tree.shell(), {"--all"}, "3s");

  EXPECT_THAT(tests::growing_pids(report_of(output)), IsSupersetOf(tree.workers()))
      << output.out << output.err;
}

TEST(AttachTree, RoleAttachesToTheWorkers) {
  PythonTree tree;

  const Output output = attach_to(tree.python(), {"--role", "dataloader_worker"}, "3s");

  const json report = report_of(output);
  EXPECT_THAT(tests::growing_pids(report), IsSupersetOf(tree.workers()))
      << output.out << output.err;
}

// What `--pid $(pgrep -f tree.py)` is where the job has forked: the shell, the job and its workers,
// in any order. The shell runs something else as well.
TEST(AttachTree, TakesAllProcessesThatAreNamed) {
  PythonTree tree;
  const std::vector<pid_t> workers = tree.workers();

  const Output output = attach_to(workers[0],
                                  {"--pid", std::to_string(tree.shell()),
                                   std::to_string(tree.python()), std::to_string(workers[1])},
                                  "3s");

  const json report = report_of(output);
  EXPECT_THAT(tests::growing_pids(report), IsSupersetOf(workers)) << output.out << output.err;
  EXPECT_THAT(output.err, testing::ContainsRegex(
                              fmt::format("attached to pid {} in (.|\n)*attached to pid {} in ",
                                          tree.python(), workers[0])))
      << "the job comes first";
  for (const pid_t pid : {tree.python(), workers[0], workers[1]}) {
    EXPECT_EQ(hooked_places(pid), 0U) << pid;
  }
}

TEST(AttachTree, WithoutAnOptionWorkersThatWereThereAreLeftAlone) {
  PythonTree tree;

  const Output output = attach_to(tree.python(), {}, "1s");

  EXPECT_THAT(output.err, HasSubstr(fmt::format("attached to pid {} in ", tree.python())));
  EXPECT_FALSE(inject::Attachment::find(tree.workers()[0]));
}

TEST(AttachTree, FollowsWhatIsForkedAndStartedLater) {
  PythonTree tree("later");
  auto arguments = tests::attach_command(tree.python(), {}, "6s");
  arguments.insert(arguments.begin(), tests::tool_path());
  Subprocess tool(arguments);
  const std::vector<pid_t> later = tests::pids_in(tree.after("later"));
  tool.wait();

  const json report = json::parse(tool.output());
  ASSERT_EQ(later.size(), 2U);
  EXPECT_THAT(tests::growing_pids(report), IsSupersetOf(later)) << tool.output() << tool.errors();
  EXPECT_FALSE(tests::line_at(report, tree.script(), kWorkLine).is_null());
  EXPECT_FALSE(tests::line_at(report, tree.program(), tests::kTrainingLine).is_null());
}

// A library that is loaded a second after the attachment, whose blocks come from its own calls.
TEST(AttachTree, LibrariesThatAreLoadedLaterAreTraced) {
  TempTree folder;
  folder.write("late.py",
               "import ctypes, time\n"
               "print('ready', flush=True)\n"
               "while 'tidemark_tracer' not in open('/proc/self/maps').read():\n"
               "    time.sleep(0.02)\n"
               "time.sleep(1)\n"
               "native = ctypes.CDLL('" +
                   victim_path("native_calls.so") +
                   "')\n"
                   "for step in range(60_000):\n"
                   "    native.keep_block(ctypes.c_size_t(100_000))\n"
                   "    time.sleep(0.005)\n");
  Subprocess python({"/usr/bin/python3", folder.path("late.py")});
  python.read_until("ready\n");

  const Output output = attach_to(python.pid(), {}, "7s");

  const json report = report_of(output);
  EXPECT_EQ(report.at("lines").at(0).at("line"), 8) << output.out << output.err;
  EXPECT_EQ(report.at("lines").at(0).at("call"), "keep_block");
}

// Its file from the first time says that the tracer rests in it, which is not so.
TEST(AttachTree, LoadsTheTracerAgainIntoWhatRunsAnotherProgram) {
  TempTree folder;
  folder.write("train.py", std::string(tests::kTraining));
  Subprocess python({"/usr/bin/python3", "-c",
                     "import os, sys\n"
                     "print('first', flush=True)\n"
                     "sys.stdin.readline()\n"
                     "os.execv(sys.executable, [sys.executable, '" +
                         folder.path("train.py") + "'])\n"});
  python.read_until("first\n");
  attach_to(python.pid(), {}, "300ms");
  python.send("go on\n");
  python.read_until("ready\n");

  const Output output = attach_to(python.pid());

  EXPECT_THAT(output.err, HasSubstr("it has started another program since it was traced"));
  EXPECT_THAT(output.err, HasSubstr("attached to pid"));
  EXPECT_EQ(report_of(output).at("lines").at(0).at("line"), tests::kTrainingLine)
      << output.out << output.err;
}

TEST(AttachTree, SaysThatATracerIsWoken) {
  const Subprocess victim({victim_path("leak_by_line"), "--count", "100000", "--step-ms", "5"});
  attach_to(victim.pid(), {}, "300ms");

  const Output again = attach_to(victim.pid(), {}, "300ms");

  EXPECT_THAT(again.err, HasSubstr(fmt::format("the tracer is in pid {} already, and is woken",
                                               victim.pid())));
  EXPECT_THAT(again.err, Not(HasSubstr("attached to pid")));
}

TEST(AttachTree, SaysHowLongTheProcessStoodStill) {
  const Subprocess victim({victim_path("leak_by_line"), "--count", "100000", "--step-ms", "5"});

  const Output output = attach_to(victim.pid(), {}, "300ms");

  EXPECT_THAT(output.err, testing::ContainsRegex(fmt::format(
                              "attached to pid {} in [0-9.]+ s; one thread of it stood still for "
                              "[0-9.]+ ms, all of them for [0-9.]+ ms; [0-9,]+ function pointers "
                              "in [0-9]+ modules call the tracer\n",
                              victim.pid())));
  EXPECT_EQ(hooked_places(victim.pid()), 0U);
  EXPECT_EQ(::kill(victim.pid(), 0), 0);
}

TEST(AttachTree, AfterCtrlCTheTracerIsOut) {
  const Subprocess victim({victim_path("leak_by_line"), "--count", "100000", "--step-ms", "5"});
  for (const int after_ms : {0, 5, 10, 15, 20, 30, 40, 60, 80, 120, 160, 400}) {
    Subprocess tool({tests::tool_path(), "profile", "--pid", std::to_string(victim.pid())});
    std::this_thread::sleep_for(std::chrono::milliseconds(after_ms));
    tool.signal(SIGINT);
    tool.wait();

    EXPECT_EQ(hooked_places(victim.pid()), 0U) << after_ms;
    EXPECT_EQ(::kill(victim.pid(), 0), 0) << after_ms;
  }
}

// In the middle of several processes, too.
TEST(AttachTree, AfterCtrlCTheTracerIsOutOfAll) {
  PythonTree tree;
  for (const int after_ms : {60, 100, 140, 180, 220, 260, 300, 400, 500}) {
    Subprocess tool(
        {tests::tool_path(), "profile", "--all", "--pid", std::to_string(tree.shell())});
    std::this_thread::sleep_for(std::chrono::milliseconds(after_ms));
    tool.signal(SIGINT);
    tool.wait();

    for (const pid_t pid : {tree.shell(), tree.python(), tree.workers()[0], tree.workers()[1]}) {
      EXPECT_EQ(hooked_places(pid), 0U) << after_ms;
    }
  }
}

// Range, rights and file of all that is mapped from files, but for the tracer.
std::string rights_of(pid_t pid) {
  const auto maps = read_file(fmt::format("/proc/{}/maps", pid));
  std::string rights;
  for (const std::string_view line : split(*maps, '\n')) {
    const bool is_of_file = line.find('/') != std::string_view::npos;
    if (is_of_file && line.find("tidemark") == std::string_view::npos) {
      rights += line;
      rights += '\n';
    }
  }
  return rights;
}

TEST(AttachTree, PagesKeepTheirRights) {
  TempTree folder;
  folder.write("train.py",
               "import ctypes, hashlib, sqlite3, ssl\n" + std::string(tests::kTraining));
  Subprocess victim({"/usr/bin/python3", folder.path("train.py")});
  victim.read_until("ready\n");
  const std::string before = rights_of(victim.pid());
  Subprocess tool({tests::tool_path(), "profile", "--plain", "--interval", "100ms", "--pid",
                   std::to_string(victim.pid())});
  tool.read_until("traced");

  EXPECT_THAT(before, HasSubstr("libssl"));
  EXPECT_GT(hooked_places(victim.pid()), 0U);
  EXPECT_EQ(rights_of(victim.pid()), before);
  tool.signal(SIGINT);
  tool.wait();

  EXPECT_EQ(rights_of(victim.pid()), before);
}

// The script goes on to its end, and computes what it computes without us.
TEST(AttachTree, AScriptThatKeepsItsBatchesHasTheSameResult) {
  TempTree folder;
  folder.write("train.py",
               "import hashlib, time\n"
               "kept = []\n"
               "print('ready', flush=True)\n"
               "for step in range(800):\n"
               "    kept.append(bytes((step * 7 + i) % 256 for i in range(2000)) * 150)\n"
               "    time.sleep(0.002)\n"
               "total = hashlib.sha256()\n"
               "for batch in kept:\n"
               "    total.update(batch)\n"
               "print('result', total.hexdigest(), len(kept), flush=True)\n");
  const std::vector<std::string> command{"/usr/bin/python3", folder.path("train.py")};
  Subprocess plain(command);
  Subprocess python(command);
  python.read_until("ready\n");

  const Output output = attach_to(python.pid());
  const int status = python.wait();
  plain.wait();

  const json report = report_of(output);
  EXPECT_EQ(report.at("lines").at(0).at("file"), folder.path("train.py")) << output.err;
  EXPECT_EQ(report.at("lines").at(0).at("line"), 5) << output.out;
  EXPECT_EQ(status, 0);
  EXPECT_THAT(plain.output(), HasSubstr("result "));
  EXPECT_EQ(python.output(), plain.output());
}

class AttachToAJobThatEnds : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(By, AttachToAJobThatEnds,
                         testing::Values("sys.exit(3)", "os._exit(3)", "os.abort()",
                                         "os.kill(os.getpid(), signal.SIGKILL)"),
                         [](const auto& way) { return std::to_string(way.index); });

// However it ends, the report is whole, and nothing is wrong with the attachment.
TEST_P(AttachToAJobThatEnds, NamesItsLine) {
  TempTree folder;
  folder.write("train.py",
               fmt::format("import os, signal, sys, time\n"
                           "kept = []\n"
                           "print('ready', flush=True)\n"
                           "while 'tidemark_tracer' not in open('/proc/self/maps').read():\n"
                           "    time.sleep(0.02)\n"
                           "for step in range(400):\n"
                           "    kept.append(bytearray(300_000))\n"
                           "    time.sleep(0.005)\n"
                           "{}\n",
                           GetParam()));
  Subprocess python({"/usr/bin/python3", folder.path("train.py")});
  python.read_until("ready\n");

  const Output output = attach_to(python.pid(), {}, "60s");

  EXPECT_THAT(output.exit_code, testing::AnyOf(0, 4)) << output.err;
  EXPECT_NE(python.wait(), 0);
  const json report = report_of(output);
  ASSERT_FALSE(report.at("lines").empty()) << output.out;
  EXPECT_EQ(report.at("lines").at(0).at("line"), 7) << output.out;
  EXPECT_EQ(tests::problems_of(report), "[]");
}

}  // namespace
}  // namespace tidemark
