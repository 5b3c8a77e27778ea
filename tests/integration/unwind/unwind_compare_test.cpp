// SPDX-License-Identifier: Apache-2.0
// Our unwinder against libunwind, frame by frame, in programs that nobody here wrote.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/subprocess.h"
#include "tests/support/temp_tree.h"

namespace tidemark::tests {
namespace {

// Stacks of all processes of a run.
struct Counts {
  std::uint64_t equal = 0;
  std::uint64_t longer = 0;  // libunwind gave up early
  std::uint64_t shorter = 0;
  std::uint64_t different = 0;
  std::uint64_t total() const { return equal + longer + shorter + different; }
};

struct Program {
  std::string path;
  std::vector<std::string> arguments;
  int every = 1;                  // compare at every so many mallocs
  bool alone = false;             // without libunwind: traces by reuse against fresh ones
  std::string among = "";         // only processes of this name, when they matter
  std::uint64_t at_least = 100;   // stacks, or the run says nothing
  double smallest_share = 0.995;  // that are equal, or longer than libunwind's
};

class UnwindCompare : public testing::Test {
 protected:
  void SetUp() override {
    void* const library = dlopen("libunwind.so.8", RTLD_LOCAL | RTLD_NOW);
    if (library == nullptr) {
      GTEST_SKIP() << "libunwind.so.8 is not installed";
    }
    dlclose(library);
  }

  Counts run(const Program& program) {
    std::vector<std::string> argv = {
        "/usr/bin/env", "LD_PRELOAD=" + victim_path("libunwind_compare.so"),
        "TIDEMARK_UNWIND_COMPARE=" + report_path(),
        "TIDEMARK_UNWIND_COMPARE_EVERY=" + std::to_string(program.every),
        "TIDEMARK_UNWIND_COMPARE_SHOW=3"};
    if (program.alone) {
      argv.emplace_back("TIDEMARK_UNWIND_COMPARE_ALONE=1");
    }
    argv.push_back(program.path);
    argv.insert(argv.end(), program.arguments.begin(), program.arguments.end());
    Subprocess process(argv);
    process.close_input();
    EXPECT_EQ(process.wait(), 0) << process.errors();
    return read_counts(program.among);
  }

  void expect_equal_stacks(const Program& program) {
    if (access(program.path.c_str(), X_OK) != 0) {
      GTEST_SKIP() << program.path << " is not installed";
    }
    const Counts counts = run(program);
    ASSERT_GE(counts.total(), program.at_least);
    const double good = static_cast<double>(counts.equal + counts.longer);
    EXPECT_GE(good / static_cast<double>(counts.total()), program.smallest_share)
        << counts.equal << " equal, " << counts.longer << " longer, " << counts.shorter
        << " shorter, " << counts.different << " different; examples:\n"
        << examples_;
    RecordProperty("stacks", std::to_string(counts.total()));
    RecordProperty("not_equal", std::to_string(counts.total() - counts.equal));
  }

  const TempTree& tree() const { return tree_; }

 private:
  std::string report_path() const { return tree_.path("report"); }

  Counts read_counts(const std::string& among) {
    Counts sum;
    std::ifstream report(report_path());
    for (std::string line; std::getline(report, line);) {
      if (line.starts_with(' ')) {
        examples_ += line + "\n";
        continue;
      }
      std::istringstream words(line);
      std::string name;
      Counts counts;
      words >> name >> counts.equal >> counts.longer >> counts.shorter >> counts.different;
      if (among.empty() || name == among) {
        sum.equal += counts.equal;
        sum.longer += counts.longer;
        sum.shorter += counts.shorter;
        sum.different += counts.different;
      }
    }
    return sum;
  }

  TempTree tree_;
  std::string examples_;
};

TEST_F(UnwindCompare, AgreesInTheCompiler) {
  tree().write("unit.cpp",
               "#include <map>\n#include <regex>\n#include <string>\n"
               "std::map<std::string, std::regex> all;\n"
               "bool f(const std::string& s) { return std::regex_match(s, all[s]); }\n");
  expect_equal_stacks({.path = "/usr/bin/g++",
                       .arguments = {"-O1", "-c", tree().path("unit.cpp"), "-o", "/dev/null"},
                       .every = 20,
                       .among = "cc1plus",
                       .at_least = 5000});
}

TEST_F(UnwindCompare, AgreesInPython) {
  tree().write("script.py", R"script(
import ctypes, json, re, sqlite3, threading

def nested(n):
    return [bytearray(700)] if n == 0 else [nested(n - 1), bytearray(600)]

nested(900)
connection = sqlite3.connect(":memory:")
connection.execute("create table t(a)")
connection.executemany("insert into t values(?)", [(str(i),) for i in range(3000)])
connection.execute("select a from t order by a desc").fetchall()
json.loads(json.dumps([{"a": "x" * 600}] * 100))
re.findall(r"(a|b)+c", "abababc" * 1000)
thread = threading.Thread(target=lambda: [bytearray(1000) for _ in range(1000)])
thread.start()
thread.join()
compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(
    lambda a, b: len(bytearray(700)))
ctypes.CDLL(None).qsort((ctypes.c_int * 10)(), 10, 4, compare)
)script");
  expect_equal_stacks(
      {.path = "/usr/bin/python3", .arguments = {tree().path("script.py")}, .at_least = 5000});
}

TEST_F(UnwindCompare, AgreesInPythonWithTorch) {
  Subprocess asked({"/usr/bin/python3", "-c", "import torch"});
  asked.close_input();
  if (asked.wait() != 0) {
    GTEST_SKIP() << "/usr/bin/python3 has no torch";
  }
  tree().write("train.py", R"script(
import torch

model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
optimizer = torch.optim.Adam(model.parameters())
for _ in range(20):
    optimizer.zero_grad()
    model(torch.randn(32, 64)).sum().backward()
    optimizer.step()
)script");
  expect_equal_stacks({.path = "/usr/bin/python3",
                       .arguments = {tree().path("train.py")},
                       .every = 50,
                       .at_least = 5000});
}

TEST_F(UnwindCompare, AgreesInNode) {
  const std::string script = R"script(
    const rows = [];
    for (let i = 0; i < 2000; i++) rows.push({x: i, s: "abc" + i});
    JSON.stringify(rows);
    require("fs").readFileSync("/etc/passwd");
    require("zlib").gzipSync(Buffer.alloc(100000));
    rows.sort((a, b) => b.x - a.x);)script";
  expect_equal_stacks(
      {.path = "/usr/bin/node", .arguments = {"-e", script}, .every = 20, .at_least = 1000});
}

TEST_F(UnwindCompare, AgreesInJava) {
  expect_equal_stacks({.path = "/usr/bin/java", .arguments = {"-version"}, .at_least = 1000});
}

TEST_F(UnwindCompare, AgreesInTheShell) {
  expect_equal_stacks(
      {.path = "/usr/bin/bash",
       .arguments = {"-c",
                     "declare -A a; for i in 1 2 3; do a[$i]=$(echo $i); done; trap : USR1; "
                     "kill -USR1 $$; printf '%s\\n' \"${a[@]}\" | sort"},
       .at_least = 1000});
}

TEST_F(UnwindCompare, AgreesInGit) {
  const std::string repository = tree().path("repository");
  const std::string script = "set -e; git init -q " + repository + "; cd " + repository +
                             "; git config user.name n; git config user.email e@e; "
                             "for i in 1 2 3 4 5 6; do seq $i 500 > file$i; git add .; "
                             "git commit -qm $i; done; git log --stat; git gc -q";
  expect_equal_stacks(
      {.path = "/usr/bin/bash", .arguments = {"-c", script}, .among = "git", .at_least = 2000});
}

// All that made other unwinders wait for each other: eight threads in malloc, ld.so and fork.
TEST_F(UnwindCompare, NeverBlocksWhileLibrariesComeAndGoAndProcessesFork) {
  expect_equal_stacks({.path = victim_path("loader_storm"),
                       .arguments = {"3"},
                       .alone = true,
                       .at_least = 10'000,
                       .smallest_share = 1.0});
}

TEST_F(UnwindCompare, ReusesRightlyInThreadsOfNode) {
  expect_equal_stacks({.path = "/usr/bin/node",
                       .arguments = {"-e",
                                     "for (let i = 0; i < 50; i++) require('zlib').gzip("
                                     "Buffer.alloc(100000), () => {});"},
                       .alone = true,
                       .at_least = 20'000,
                       .smallest_share = 1.0});
}

}  // namespace
}  // namespace tidemark::tests
