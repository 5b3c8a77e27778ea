// SPDX-License-Identifier: Apache-2.0
#include "live/profile.h"

#include <memory>

#include "cli/shared_options.h"

namespace tidemark::cli {
namespace {

using live::ProfileOptions;

std::string recording_problem(const ProfileOptions& options) {
  if (targets_given(options.watch.target) > 0) {
    return "a recording and something to watch exclude each other";
  }
  return options.trace != ProfileOptions().trace || is_for_watching(options.watch)
             ? "--interval, --duration, --output, --force, --pss, --step-regex, --log-file, "
               "--no-redact, --mode, --sample-every, --no-follow and --unwinder are for a command, "
               "not for a recording"
             : "";
}

std::string problem_with(const ProfileOptions& options) {
  if (!options.input.empty()) {
    return recording_problem(options);
  }
  const live::TargetOptions& target = options.watch.target;
  if (target.pids.size() > 1) {
    return "profile takes one --pid";
  }
  if (targets_given(target) == 0) {
    return "say what to profile: -- COMMAND, or a run file";
  }
  if (!target.pids.empty() && !target.command.empty()) {
    return "--pid and -- COMMAND exclude each other";
  }
  const collect::TraceOptions usual;
  const collect::TraceOptions& trace = options.trace;
  if (trace.mode == TraceMode::kExact && trace.sample_every_bytes != usual.sample_every_bytes) {
    return "--sample-every is for sampled mode: --mode exact records every block";
  }
  if (!target.pids.empty() && (!trace.follow_children || trace.use_libunwind)) {
    return "--no-follow and --unwinder are set when a program starts: they are for -- COMMAND";
  }
  return watch_problem(options.watch);
}

void add_tracing(Command& command, collect::TraceOptions& trace) {
  command.value(
      "--mode", "sampled|exact", collect::parse_trace_mode, trace.mode,
      "sampled (default): a block in some bytes, for next to nothing; exact: every block");
  command.value("--sample-every", "SIZE", collect::parse_sample_every, trace.sample_every_bytes,
                "Of sampled mode: one sample in so many allocated bytes (default 512KiB)");
  command.flag("--follow-children", trace.follow_children,
               "Trace the programs that the command starts as well (default)");
  command.flag(
      "--no-follow", [&] { trace.follow_children = false; }, "Leave them alone");
  command.value(
      "--unwinder", "own|libunwind",
      [&](const std::string& text) -> Status {
        if (text != "own" && text != "libunwind") {
          return Error{Errc::kUsage, "--unwinder is own or libunwind"};
        }
        trace.use_libunwind = text == "libunwind";
        return ok();
      },
      "How stacks are walked: own (default) or libunwind");
}

}  // namespace

void add_profile(Program& program) {
  const auto options = std::make_shared<ProfileOptions>();
  Command& command =
      program.add("profile", "Which lines of native code hold the growth of a command");
  command.argument("FILE", "", options->input,
                   "A run file that this command has recorded; a number is a process id");
  add_watch(command, options->watch);
  // The tracer has to be there from the start: nothing that merely runs can be profiled.
  command.remove("--find-training");
  command.remove("--system");
  command.describe("--pid", "Wake the tracer that sleeps in this process (docs/profile.md)");
  const Option json =
      command.flag("--json", options->watch.json, "Print one JSON object at the end");
  command.flag("--plain", options->plain, "Print lines, without colour").excludes(json);
  add_tracing(command, options->trace);
  command.number("--top", options->top, 1, 1000, "Show at most so many lines of code (default 10)");
  add_thresholds(command, options->judge);
  command.footer(
      "Everything after -- is a command to start with the tracer in it; its output and its exit\n"
      "status are its own, the report goes to stderr. The lines are of native code (C, C++ and\n"
      "the like, with -g); of Python code it names the native function that Python calls.\n"
      "docs/profile.md explains the report.\n\n"
      "Examples:\n"
      "  tidemark profile -- tidemark-harness train leak --cause native\n"
      "  tidemark profile --mode exact --step-regex 'Step +(\\d+)' -o run.tidemark -- ./train\n"
      "  tidemark profile run.tidemark");
  command.run_by([options] { return live::run_profile(*options); },
                 [options] {
                   take_pid(options->input, options->watch.target);
                   return problem_with(*options);
                 });
}

}  // namespace tidemark::cli
