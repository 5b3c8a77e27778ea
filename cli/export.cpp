// SPDX-License-Identifier: Apache-2.0
#include "report/export.h"

#include <memory>

#include "cli/command.h"
#include "common/clock.h"
#include "common/units.h"

namespace tidemark::cli {
namespace {

Result<double> parse_seconds(std::string_view text) {
  const auto ns = parse_duration_ns(text);
  if (!ns) {
    return ns.error();
  }
  return to_seconds(*ns);
}

}  // namespace

void add_export(Program& program) {
  const auto options = std::make_shared<report::ExportOptions>();
  Command& command =
      program.add("export", "Convert a recording (run file, CSV, mprof, psrecord, JSON series)");
  command.argument("FILE", "", options->input, "The recording; - reads text formats from stdin")
      .required();
  command.choice("-f,--format", {"csv", "jsonl", "tidemark", "folded", "pprof", "speedscope"},
                 options->format,
                 "csv (default), jsonl or tidemark; of call stacks: folded, pprof or speedscope");
  command.value("--from", "TIME", parse_seconds, options->from_s,
                "Of call stacks: growth since this time of the run instead of live bytes");
  command.value("--to", "TIME", parse_seconds, options->to_s,
                "Of call stacks: as they were at this time (default: the end)");
  command.text("-o,--output", "FILE", options->output, "Write here instead of stdout");
  command.flag("--force", options->force, "Replace an existing file");
  command.footer(
      "Examples:\n"
      "  tidemark export run.tidemark --format csv -o run.csv\n"
      "  tidemark export run.tidemark --format pprof --from 5min -o growth.pb");
  command.run_by([options] { return report::run_export(*options); });
}

}  // namespace tidemark::cli
