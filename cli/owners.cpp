// SPDX-License-Identifier: Apache-2.0
#include "live/owners.h"

#include <memory>

#include "cli/shared_options.h"

namespace tidemark::cli {
namespace {

using live::OwnersOptions;

std::string recording_problem(const OwnersOptions& options) {
  if (targets_given(options.watch.target) > 0) {
    return "a recording and something to watch exclude each other";
  }
  if (!options.exports.empty()) {
    return "--heapsnapshot and --dot need a process: a run file does not have its objects";
  }
  const std::string option = option_for_watching(options.watch);
  return option.empty() ? "" : option + " is for a job, not for a recording";
}

std::string problem_with(const OwnersOptions& options) {
  if (!options.exports.dot_owner.empty() && options.exports.dot.empty()) {
    return "--owner is for --dot: it says whose paths are written";
  }
  if (!options.input.empty()) {
    return recording_problem(options);
  }
  const live::TargetOptions& target = options.watch.target;
  if (targets_given(target) == 0) {
    return "say whose heap to look at: --pid PID, --find-training, -- COMMAND, or a run file";
  }
  if (targets_given(target) > 1) {
    return "--pid, --find-training and -- COMMAND exclude each other";
  }
  live::WatchOptions watched = options.watch;
  watched.force = watched.force && options.exports.empty();  // it may be for those files
  return watch_problem(watched);
}

void add_looking(Command& command, OwnersOptions& options) {
  command.number("--looks", options.looks, 1, 1000, "Look so many times (default 3)");
  command.value("--every", "TIME|STEPS", live::parse_look_every, options.every,
                "From one look to the next: 20s (default), or 50steps where steps are known");
  command.value("--frozen", "auto|always|never", live::parse_frozen_use, options.heap.frozen,
                "Read a copy of the process that never runs: if the process is busy and memory has "
                "room for it (auto, default), always, or never: its threads are held meanwhile");
  command.value(
      "--budget", "TIME,SIZE",
      [&](const std::string& text) { return live::parse_look_budget(text, options.heap); },
      "What a look may take of time and of our memory (default 10s,1GiB); what is not reached by "
      "then is left out, and the report says so");
}

void add_showing(Command& command, OwnersOptions& options) {
  command.flag("--types", options.types, "Show objects by type, growing or not");
  command.flag("--tensors", options.tensors,
               "Show tensors by device, dtype and shape, growing or not");
  command.flag("--all", options.all,
               "Look at all processes of the tree, and show owners in libraries and what does not "
               "grow like the rest");
  command.number("--top", options.top, 1, 1000, "Show at most so many owners (default 10)");
  const Option json =
      command.flag("--json", options.watch.json, "Print one JSON object at the end");
  command.flag("--plain", options.plain, "Print without colour").excludes(json);
}

void add_exports(Command& command, OwnersOptions& options) {
  command.text("--heapsnapshot", "FILE", options.exports.heapsnapshot,
               "Write the objects of the last look for Chrome DevTools (*.heapsnapshot)");
  command.text("--dot", "FILE", options.exports.dot,
               "Write the ways to an owner at the last look as a graph for Graphviz");
  command.text("--owner", "PATH", options.exports.dot_owner,
               "Of --dot: the path of the owner, as the report has it (default: the one that grows "
               "most)");
}

}  // namespace

void add_owners(Program& program) {
  const auto options = std::make_shared<OwnersOptions>();
  Command& command = program.add(
      "owners", "Which objects hold the memory and its growth, read from outside, no restart");
  command.argument("FILE", "", options->input,
                   "A run file that this command has recorded; a number is a process id");
  add_watch(command, options->watch);
  command.remove("--system");
  command.describe("--pid", "Look at this process, or at those that do the work below it");
  command.describe("--force", "Replace files that exist: of --output, --heapsnapshot and --dot");
  add_looking(command, *options);
  add_showing(command, *options);
  add_exports(command, *options);
  add_thresholds(command, options->judge);
  command.footer(
      "It reads the objects of Python (3.9 to 3.15), and tensors of libtorch without Python, in a "
      "process\nthat runs, and loads nothing into it; the process stands still for milliseconds. "
      "What holds more at\na later look than at the first is named by its path, with its rate. "
      "docs/owners.md explains each\nline.\n\n"
      "Examples:\n"
      "  tidemark owners --find-training\n"
      "  tidemark owners --pid 4711 --looks 6 --every 50steps -o looks.tidemark\n"
      "  tidemark owners --pid 4711 --looks 1 --types --tensors\n"
      "  tidemark owners looks.tidemark");
  command.run_by([options] { return live::run_owners(*options); },
                 [options] {
                   take_pid(options->input, options->watch.target);
                   options->exports.replace = options->watch.force;
                   return problem_with(*options);
                 });
}

}  // namespace tidemark::cli
