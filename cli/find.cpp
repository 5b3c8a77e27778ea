// SPDX-License-Identifier: Apache-2.0
#include "live/find.h"

#include <memory>

#include "cli/command.h"

namespace tidemark::cli {

void add_find(Program& program) {
  const auto options = std::make_shared<live::FindOptions>();
  Command& command = program.add("find", "Which process is the training job, and why");
  command.flag("--json", options->json, "Print one JSON object");
  command.flag("--all", options->all, "Also show candidates with weak evidence");
  command.flag("--no-redact", options->no_redact, "Show secrets in command lines");
  command.footer("Example:\n  tidemark find");
  command.run_by([options] { return live::run_find(*options); });
}

}  // namespace tidemark::cli
