// SPDX-License-Identifier: Apache-2.0
// The main loop of `tidemark monitor -- CMD` without the monitor: runs a command and returns its
// status. What it learned goes to a file, so that the command has the descriptors to itself.
//
// usage: launch_probe [--report FILE] [--regex PATTERN] [--stdout-to-stderr] [--trace] -- CMD...
//
// --trace: a thread beside the loop stops the command by ptrace, several times.
#include <poll.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/records.h"
#include "live/launch/launch.h"
#include "live/launch/output_relay.h"
#include "live/launch/signal_inbox.h"
#include "monitor/markers/step_pattern.h"

namespace {

// NOLINTBEGIN(google-build-using-namespace): one small program
using namespace tidemark;
using namespace tidemark::live;
using namespace tidemark::monitor;
// NOLINTEND(google-build-using-namespace)

struct Arguments {
  std::string report = "/dev/null";
  std::string regex;
  bool stdout_to_stderr = false;
  bool trace = false;
  std::vector<std::string> command;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--report" && i + 1 < argc) {
      arguments.report = argv[++i];
    } else if (argument == "--regex" && i + 1 < argc) {
      arguments.regex = argv[++i];
    } else if (argument == "--stdout-to-stderr") {
      arguments.stdout_to_stderr = true;
    } else if (argument == "--trace") {
      arguments.trace = true;
    } else if (argument == "--") {
      arguments.command.assign(argv + i + 1, argv + argc);
      break;
    }
  }
  return arguments;
}

int fail(const Error& error) {
  fmt::print(stderr, "launch_probe: {}\n", error.what);
  return 3;
}

// Returns how many of the stops that it asked for it has seen.
int stop_again_and_again(pid_t pid) {
  constexpr int kStops = 20;
  int seen = 0;
  if (::ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) != 0) {
    return -1;
  }
  for (int i = 0; i < kStops; ++i) {
    ::ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr);
    int status = 0;
    for (int tries = 0; tries < 1'000; ++tries) {
      if (::waitpid(pid, &status, __WALL | WNOHANG) == pid && WIFSTOPPED(status)) {
        ++seen;
        break;
      }
      ::usleep(1'000);
    }
    ::usleep(2'000);  // for the loop to be told of it
    ::ptrace(PTRACE_CONT, pid, nullptr, nullptr);
  }
  ::ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr);
  ::usleep(20'000);
  ::ptrace(PTRACE_DETACH, pid, nullptr, nullptr);
  return seen;
}

int run(const Arguments& arguments) {
  const SystemClock clock;
  auto inbox = SignalInbox::open(SignalInbox::For::kCommand);
  if (!inbox) {
    return fail(inbox.error());
  }
  LaunchOptions options;
  options.argv = arguments.command;
  options.stdout_fd = arguments.stdout_to_stderr ? 2 : -1;
  std::optional<OutputRelay> relay;
  if (!arguments.regex.empty()) {
    auto pattern = StepPattern::compile(arguments.regex);
    if (!pattern) {
      return fail(pattern.error());
    }
    auto opened = OutputRelay::open(
        {*pattern, arguments.stdout_to_stderr ? 2 : 1, 2, clock.monotonic_ns()}, clock);
    if (!opened) {
      return fail(opened.error());
    }
    relay.emplace(std::move(*opened));
    options.stdout_fd = relay->child_stdout();
    options.stderr_fd = relay->child_stderr();
  }
  auto command = LaunchedCommand::start(options, *inbox);
  if (!command) {
    return fail(command.error());
  }
  if (relay) {
    relay->begin();
  }
  int stops_seen = 0;
  std::thread tracer;
  if (arguments.trace) {
    tracer = std::thread([&, pid = command->key().pid] { stops_seen = stop_again_and_again(pid); });
  }
  while (command->running()) {
    pollfd wanted{inbox->fd(), POLLIN, 0};
    ::poll(&wanted, 1, -1);
    while (const auto signal = inbox->next()) {
      if (relay && signal->number == SIGWINCH) {
        relay->copy_window_size();
      }
      command->handle(*signal);
    }
  }
  std::string report = fmt::format("exit {}\n", *command->exit_code());
  for (const ReapedChild& child : command->take_reaped()) {
    report += fmt::format("reaped {}\n", child.pid == command->key().pid ? "command" : "orphan");
  }
  if (tracer.joinable()) {
    tracer.join();
    report += fmt::format("stops {}\n", stops_seen);
  }
  if (relay) {
    relay->finish();
    std::vector<MarkerRecord> steps;
    relay->take(steps);
    for (const MarkerRecord& step : steps) {
      report += fmt::format("step {}\n", step.value);
    }
  }
  if (std::FILE* file = std::fopen(arguments.report.c_str(), "we")) {
    std::fputs(report.c_str(), file);
    std::fclose(file);
  }
  return *command->exit_code();
}

}  // namespace

int main(int argc, char** argv) { return run(parse(argc, argv)); }
