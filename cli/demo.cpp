// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/demo/demo.h"

#include <memory>

#include "cli/command.h"

namespace tidemark::cli {

void add_demo(Program& program) {
  const auto options = std::make_shared<demo::DemoOptions>();
  Command& command =
      program.add("demo", "Watch training jobs with a known ground truth: is every verdict right?");
  command.arguments("SCENARIO", options->scenarios, "Only these, for example warmup wrapper");
  command.flag("--all", options->all, "Every scenario, not only the usual seven");
  command.number("--seed", options->seed, 0, 1'000'000'000,
                 "Of the jobs' data, weights and jitter (default 1)");
  command.flag("--json", options->json, "Print one JSON object; progress goes to stderr");
  command.text("--keep", "DIR", options->keep,
               "Keep recordings, ground truth and logs in this folder");
  command.text("--harness", "FILE", options->harness,
               "The trainer to run (default: tidemark-harness beside this program)");
  command.footer(
      "Exit codes: 0 all verdicts are right, 1 one is wrong, 3 a job could not be run.\n\n"
      "Examples:\n"
      "  tidemark demo\n"
      "  tidemark demo leak-collator --keep runs");
  command.run_by([options] { return demo::run_demo(*options); });
}

}  // namespace tidemark::cli
