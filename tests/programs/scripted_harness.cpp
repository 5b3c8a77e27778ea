// SPDX-License-Identifier: Apache-2.0
// Looks like tidemark-harness to whoever runs it, without a framework behind it.
//
// usage: scripted_harness honest|lying|failing|unfinished train warmup|leak [--FLAG VALUE]...
// [--wrapper]
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "tests/programs/memory_victim.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

namespace {

struct Script {
  std::string mode;
  std::string preset;
  std::map<std::string, std::string> flags;
  bool is_wrapped = false;

  double number(const char* flag, double fallback) const {
    const auto found = flags.find(flag);
    return found == flags.end() ? fallback : std::strtod(found->second.c_str(), nullptr);
  }
};

Script parse(int argc, char** argv) {
  Script script{argv[1], argv[3], {}};
  for (int i = 4; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--wrapper") {
      script.is_wrapped = true;
    } else if (i + 1 < argc) {
      script.flags[argv[i]] = argv[i + 1];
      ++i;
    }
  }
  return script;
}

constexpr int kKeepLine = 91;  // where the leak is

void write_truth(const Script& script, bool complete) {
  std::FILE* const file = std::fopen(script.flags.at("--truth").c_str(), "w");
  if (file == nullptr) {
    std::perror("truth");
    std::_Exit(3);
  }
  const bool leaks = script.preset == "leak";
  const bool says_leak = leaks != (script.mode == "lying");
  std::fprintf(file, R"({"schema":1,"complete":%s,"class":"%s","patterns":[)",
               complete ? "true" : "false", says_leak ? "leak" : "warmup");
  if (leaks) {
    std::fprintf(file, R"({"kind":"leak","from_step":%.0f,"bytes_per_step":%.0f})",
                 script.number("--from-step", 100),
                 script.number("--mb-per-step", 0.5) * kMegabyte);
  }
  const std::string line =
      "\"tests/programs/scripted_harness.cpp:" + std::to_string(kKeepLine) + '"';
  std::fprintf(file, R"(],"allocating_line":%s,"where":{"kind":"process","role":"trainer"},)",
               leaks ? line.c_str() : "null");
  std::fprintf(file, R"("processes":[{"pid":%d,"role":"trainer"}]})", static_cast<int>(::getpid()));
  std::fclose(file);
}

int train(const Script& script) {
  if (script.mode == "failing") {
    std::fputs("tidemark-harness: error: no such device\n", stderr);
    return 3;
  }
  write_truth(script, false);
  const bool leaks = script.preset == "leak";
  const double from = leaks ? script.number("--from-step", 100) : 0.0;
  const double to = leaks ? script.number("--steps", 400) : 60.0;
  const double mb_per_step = script.number("--mb-per-step", 0.5);
  Pace pace;
  pace.count = script.number("--steps", 300);
  pace.step_ms = 12;
  pace.announce = true;
  const Block base(64);
  std::vector<Block> kept;
  run_steps(pace, [&](long n) {
    const auto step = static_cast<double>(n);
    if (step > from && step <= to) {
      kept.emplace_back(mb_per_step);
      static_assert(kKeepLine == __LINE__ - 1);
    }
  });
  write_truth(script, script.mode != "unfinished");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4 || std::string_view(argv[2]) != "train") {
    return 2;
  }
  const Script script = parse(argc, argv);
  if (!script.is_wrapped) {
    return train(script);
  }
  const pid_t child = ::fork();
  if (child == 0) {
    return train(script);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}
