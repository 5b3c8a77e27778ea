// SPDX-License-Identifier: Apache-2.0
#include "live/diagnose.h"

#include <memory>

#include "cli/shared_options.h"
#include "live/owners.h"

namespace tidemark::cli {
namespace {

using live::DiagnoseOptions;

std::string problem_with(const DiagnoseOptions& options) {
  const int targets = targets_given(options.watch.target);
  if (!options.input.empty()) {
    if (targets > 0) {
      return "a recording and something to diagnose exclude each other";
    }
    const std::string option = !options.injects     ? "--no-inject"
                               : options.intervenes ? "--intervene"
                                                    : option_for_watching(options.watch);
    return option.empty() ? "" : option + " is for a job, not for a recording";
  }
  if (targets == 0) {
    return "say what to diagnose: --pid PID, --find-training, -- COMMAND, or a recording";
  }
  if (targets > 1) {
    return "--pid, --find-training and -- COMMAND exclude each other";
  }
  return watch_problem(options.watch);
}

}  // namespace

void add_diagnose(Program& program) {
  const auto options = std::make_shared<DiagnoseOptions>();
  Command& command =
      program.add("diagnose", "What grows, who holds it, which line made it, what to do: one page");
  command.argument("FILE", "", options->input,
                   "A recording to diagnose again; a number is a process id");
  add_watch(command, options->watch);
  command.remove("--system");
  command.describe("--duration", "Answer after this time, if not before (default 2min)");
  command.flag(
      "--no-inject", [options] { options->injects = false; },
      "Load nothing into the job: no lines of code, all else as usual");
  command.flag(
      "--intervene", options->intervenes,
      "Then try what it is not, as tidemark rule-out does: small interventions in the job");
  command.value("--frozen", "auto|always|never", live::parse_frozen_use, options->heap.frozen,
                "How objects are read: of a copy of the process that never runs (auto, always), "
                "or never: its threads are held meanwhile");
  const Option json =
      command.flag("--json", options->watch.json, "Print one JSON object at the end");
  command.flag("--plain", options->plain, "Print lines, without colour").excludes(json);
  add_judging(command, options->judge);
  add_limit(command, options->judge,
            "Memory that there is, for the forecast (default: cgroup, rlimit or machine)");
  command.footer(
      "It watches the job until it is clear whether it leaks, two minutes at most; Ctrl-C gives "
      "the\n"
      "answer so far. Meanwhile it follows what allocates (as tidemark profile does) and looks at\n"
      "the objects of Python three times (as tidemark owners does). What it could not look at is\n"
      "said at the end of the page. Exit codes: 0 no leak, 1 leak, 3 the target failed or could\n"
      "not be read, 4 cannot tell yet.\n\n"
      "Examples:\n"
      "  tidemark diagnose --find-training\n"
      "  tidemark diagnose 4711 -o run.tidemark\n"
      "  tidemark diagnose run.tidemark\n"
      "  tidemark diagnose --no-inject --pid 4711 --duration 30s");
  command.run_by([options] { return live::run_diagnose(*options); },
                 [options] {
                   take_pid(options->input, options->watch.target);
                   return problem_with(*options);
                 });
}

}  // namespace tidemark::cli
