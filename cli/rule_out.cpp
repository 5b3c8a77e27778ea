// SPDX-License-Identifier: Apache-2.0
#include "live/rule_out.h"

#include <memory>

#include "cli/shared_options.h"
#include "common/units.h"

namespace tidemark::cli {
namespace {

using live::RuleOutOptions;

std::string problem_with(const RuleOutOptions& options) {
  const live::TargetOptions& target = options.watch.target;
  if (!options.input.empty()) {
    return targets_given(target) > 0 || options.dry_run ||
                   !option_for_watching(options.watch).empty()
               ? "a recording and something to do in a process exclude each other"
               : "";
  }
  if (!target.command.empty()) {
    return "there is nothing to rule out in a command that only starts: give --pid of one that "
           "runs";
  }
  if (targets_given(target) != 1) {
    return targets_given(target) == 0
               ? "say which process: --pid PID, --find-training, or a run file"
               : "--pid and --find-training exclude each other";
  }
  if (options.interventions.choice == collect::InterventionChoice{false, false, false, false}) {
    return "nothing is left to be done";
  }
  if (options.dry_run && !options.watch.output.empty()) {
    return "--dry-run has nothing to record";
  }
  return watch_problem(options.watch);
}

void add_choice(Command& command, live::InterventionOptions& options) {
  const Option only =
      command.value("--only", "LIST", live::parse_interventions, options.choice,
                    "Do only these: of trim, gc, cuda and page-cache, separated by commas");
  const auto add_switch = [&](const std::string& name, bool& choice, const std::string& help) {
    command
        .flag(
            name, [&choice] { choice = false; }, help)
        .excludes(only);
  };
  add_switch("--no-trim", options.choice.trim, "Leave the allocators alone");
  add_switch("--no-gc", options.choice.gc, "Leave Python's collector alone");
  add_switch("--no-cuda", options.choice.cuda, "Leave torch's caches alone");
  add_switch("--no-page-cache", options.choice.page_cache, "Read nothing about files");
  command.value("--settle", "TIME", parse_duration_ns, options.settle_ns,
                "Wait so long between an intervention and the samples behind it (default 2s); the "
                "control measurement takes as long");
  command.value("--timeout", "TIME", parse_duration_ns, options.timeout_ns,
                "Wait at most so long for a process that does not come to it, in native code for "
                "example (default 20s); what has not begun by then is withdrawn");
}

}  // namespace

void add_rule_out(Program& program) {
  const auto options = std::make_shared<RuleOutOptions>();
  Command& command =
      program.add("rule-out", "What the memory is not: small safe interventions, one at a time");
  command.argument("FILE", "", options->input,
                   "A run file that this command has recorded; a number is a process id");
  add_watch(command, options->watch);
  for (const char* const name :
       {"--system", "--interval", "--duration", "--pss", "--step-regex", "--log-file"}) {
    command.remove(name);
  }
  command.describe("--pid", "Intervene in this process, or in those that do the work below it");
  command.describe("--find-training", "Find the training job on this machine and intervene in it");
  add_choice(command, options->interventions);
  command.flag("--dry-run", options->dry_run, "Print what would be done and whether it could be");
  const Option json =
      command.flag("--json", options->watch.json, "Print one JSON object at the end");
  command.flag("--plain", options->plain, "Print as if this were no terminal").excludes(json);
  command.footer(
      "It loads a small library into the process, which asks allocators for what is free "
      "(malloc_trim),\nPython for its garbage (gc.collect) and torch for its caches "
      "(empty_cache), and compares what\nmemory does with what it did by itself before. The job's "
      "results stay as they are.\ndocs/rule-out.md explains each line.\n\n"
      "Examples:\n"
      "  tidemark rule-out --pid 4711\n"
      "  tidemark rule-out --find-training --dry-run\n"
      "  tidemark rule-out --pid 4711 --only gc,trim -o looked.tidemark");
  command.run_by(
      [options] {
        options->watch.pss = monitor::PssMode::kOff;  // nothing but our own doing is to be seen
        return live::run_rule_out(*options);
      },
      [options] {
        take_pid(options->input, options->watch.target);
        return problem_with(*options);
      });
}

}  // namespace tidemark::cli
