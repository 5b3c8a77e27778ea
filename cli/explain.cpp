// SPDX-License-Identifier: Apache-2.0
#include "live/explain.h"

#include <memory>

#include "cli/shared_options.h"
#include "common/text.h"
#include "common/units.h"

namespace tidemark::cli {
namespace {

using live::ExplainOptions;

Result<std::int64_t> parse_every(std::string_view text) {
  constexpr std::int64_t kShortestNs = 100'000'000;
  auto ns = parse_duration_ns(text);
  if (ns && *ns < kShortestNs) {
    return Error{Errc::kUsage, "--every: the shortest is 100ms"};
  }
  return ns;
}

std::string problem_with(const ExplainOptions& options) {
  const live::TargetOptions& target = options.watch.target;
  if (!options.input.empty()) {
    if (targets_given(target) > 0) {
      return "a recording and something to watch exclude each other";
    }
    const std::string option = options.looks      ? "--looks"
                               : options.every_ns ? "--every"
                                                  : option_for_watching(options.watch);
    return option.empty() ? "" : option + " is for a job, not for a recording";
  }
  if (targets_given(target) == 0) {
    return "say whose memory to explain: --pid PID, --find-training, -- COMMAND, or a run file";
  }
  if (targets_given(target) > 1) {
    return "--pid, --find-training and -- COMMAND exclude each other";
  }
  return watch_problem(options.watch);
}

}  // namespace

void add_explain(Program& program) {
  const auto options = std::make_shared<ExplainOptions>();
  Command& command = program.add(
      "explain", "Where is my RSS: a ledger of a job's memory that adds up, read from outside");
  command.argument("FILE", "", options->input,
                   "A run file that this command has recorded; a number is a process id");
  add_watch(command, options->watch);
  command.remove("--system");
  command.remove("--pss");
  command.describe("--pid", "Explain this process and all its descendants (repeatable)");
  command.value("--every", "TIME", parse_every, options->every_ns,
                "Look again after this time, and tell which row grows (default 20s, of --looks)");
  command.value(
      "--looks", "N",
      [options](const std::string& text) -> Status {
        const auto number = parse_number<std::uint64_t>(text);
        if (!number || *number < 1 || *number > 1000) {
          return Error{Errc::kUsage, "--looks is a number from 1 to 1000"};
        }
        options->looks = *number;
        return ok();
      },
      "Look so many times (default 1, with --every 2)");
  command.flag("--all", options->all, "Show every row of every process");
  const Option json =
      command.flag("--json", options->watch.json, "Print one JSON object at the end");
  command.flag("--plain", options->plain, "Print without colour").excludes(json);
  command.footer(
      "It reads the memory map of each process once, and what malloc and Python have written into "
      "their\nheaps; nothing is loaded into the job and nothing of it is changed. docs/explain.md "
      "explains each row.\n\n"
      "Examples:\n"
      "  tidemark explain --pid 4711\n"
      "  tidemark explain --find-training --every 30s\n"
      "  tidemark explain --pid 4711 -o ledger.tidemark\n"
      "  tidemark explain ledger.tidemark --all");
  command.run_by([options] { return live::run_explain(*options); },
                 [options] {
                   take_pid(options->input, options->watch.target);
                   return problem_with(*options);
                 });
}

}  // namespace tidemark::cli
