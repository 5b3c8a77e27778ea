// SPDX-License-Identifier: Apache-2.0
#include "report/diff.h"

#include <memory>

#include "cli/shared_options.h"

namespace tidemark::cli {

void add_diff(Program& program) {
  const auto options = std::make_shared<report::DiffOptions>();
  Command& command =
      program.add("diff", "Two recordings side by side: which got better, which got worse");
  command
      .argument("A", "FILE", options->a,
                "A recording (run file, CSV, mprof, psrecord, JSON series)")
      .required();
  command.argument("B", "FILE", options->b, "Another, after a change").required();
  command.flag("--json", options->json, "Print one JSON object");
  add_judging(command, options->judge);
  command.footer("Example:\n  tidemark diff before.tidemark after.tidemark");
  command.run_by([options] { return report::run_diff(*options); });
}

}  // namespace tidemark::cli
