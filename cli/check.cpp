// SPDX-License-Identifier: Apache-2.0
#include "check/check.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "check/config.h"
#include "cli/command.h"

namespace tidemark::cli {
namespace {

using check::CheckOptions;
using check::CheckSetting;

std::string group_of(const CheckSetting& setting) {
  if (setting.key.starts_with("gpu_")) {
    return "Budgets on GPUs";
  }
  if (setting.key.starts_with("max_")) {
    return "Budgets";
  }
  const bool compares = setting.key == "baseline" || setting.key == "update_baseline" ||
                        setting.key == "tolerance" || setting.key == "history" ||
                        setting.key == "commit";
  return compares ? "Comparison" : "Runs";
}

void add_setting(Command& command, const CheckSetting& setting, CheckOptions& options) {
  const auto take = [&options, &setting](const std::string& text) -> Status {
    check::CheckSpec scratch;  // wrong values are told at once
    if (const Status status = setting.set(scratch, text); !status) {
      return Error{Errc::kUsage,
                   fmt::format("{}: {}", check::option_name(setting), status.error().what)};
    }
    options.settings.emplace_back(setting.key, text);
    return ok();
  };
  std::string name = check::option_name(setting);
  if (setting.key == "output") {
    name = "-o," + name;
  } else if (setting.key == "interval") {
    name = "-i," + name;
  }
  const std::string help(setting.help);
  const Option option = setting.is_flag()
                            ? command.flag(
                                  name, [take] { (void)take("true"); }, help)
                            : command.value(name, std::string(setting.value), take, help);
  (void)option.group(group_of(setting));
}

// Where checks are described, a word is the name of one.
bool names_checks_of_a_file(const std::vector<std::string>& arguments) {
  const auto is_config = [](const std::string& word) { return word.starts_with("--config"); };
  return ::access(std::string(check::kConfigName).c_str(), F_OK) == 0 ||
         std::any_of(arguments.begin(), arguments.end(), is_config);
}

std::string problem_with(const CheckOptions& options) {
  if (!options.command.empty() && options.names.size() > 1) {
    return "a command has one name";
  }
  int to_stdout = 0;
  for (const std::string* const path : {&options.junit, &options.markdown, &options.json}) {
    to_stdout += *path == "-" ? 1 : 0;
  }
  return to_stdout > 1 ? "only one report can go to the standard output" : "";
}

}  // namespace

void add_check(Program& program) {
  const auto options = std::make_shared<CheckOptions>();
  Command& command = program.add(
      "check", "CI gate: does the memory of a command keep to its budgets? (docs/check.md)");
  command.arguments("NAME", options->names,
                    "Of the checks in tidemark.json (default: all); with a command, its name");
  command.text("--config", "FILE", options->config,
               "Read checks from this file (default tidemark.json)");
  command.take_rest(options->command);
  command.notice_forgotten_dashes(names_checks_of_a_file);
  for (const CheckSetting& setting : check::check_settings()) {
    add_setting(command, setting, *options);
  }
  const auto add_report = [&](const std::string& name, std::string& into, const std::string& help) {
    command.text(name, "FILE", into, help).group("Reports");
  };
  add_report("--junit", options->junit, "Write a JUnit report; - is the standard output");
  add_report("--markdown", options->markdown, "Write a comment for a pull request");
  add_report("--json", options->json, "Write everything as one JSON object (docs/output.md)");
  command.footer(
      "Everything after -- is the command. Exit codes: 0 within its budgets, 1 a budget is\n"
      "exceeded, 3 the command failed or could not be run, 4 cannot tell: run it for longer.\n\n"
      "Examples:\n"
      "  tidemark check --max-growth 1MiB/step --warmup 20steps -- python train.py\n"
      "  tidemark check --max-peak 4GiB --max-retained 0 --timeout 10min -- ./train.sh\n"
      "  tidemark check --baseline base.json --update-baseline --jobs 3 -- ./train.sh\n"
      "  tidemark check                      # all checks of tidemark.json");
  command.run_by([options] { return check::run_check(*options); },
                 [options] { return problem_with(*options); });
}

}  // namespace tidemark::cli
