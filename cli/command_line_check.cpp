// SPDX-License-Identifier: Apache-2.0
// The second file that sees CLI11.
#include "cli/command_line_check.h"

#include <CLI/CLI.hpp>

#include <string>

#include <fmt/format.h>

#include "cli/exit_code.h"

namespace tidemark::cli {
namespace {

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

void add_setting(CLI::App& app, const CheckSetting& setting, CheckOptions& options) {
  const std::string key(setting.key);
  const auto take = [&options, &setting, key](const std::string& text) {
    CheckSpec scratch;  // wrong values are told at once
    if (const Status status = setting.set(scratch, text); !status) {
      throw CLI::ValidationError(fmt::format("{}: {}", option_name(setting), status.error().what),
                                 kExitUsage);
    }
    options.settings.emplace_back(key, text);
  };
  std::string name = option_name(setting);
  if (setting.key == "output") {
    name = "-o," + name;
  } else if (setting.key == "interval") {
    name = "-i," + name;
  }
  CLI::Option* const option =
      setting.is_flag()
          ? app.add_flag_callback(
                name, [take] { take("true"); }, std::string(setting.help))
          : app.add_option_function<std::string>(name, take, std::string(setting.help))
                ->type_name(std::string(setting.value));
  option->group(group_of(setting));
}

}  // namespace

CLI::App* add_check(CLI::App& app, CheckOptions& options) {
  CLI::App* const check = app.add_subcommand(
      "check", "CI gate: does the memory of a command keep to its budgets? (docs/check.md)");
  check
      ->add_option("NAME", options.names,
                   "Of the checks in tidemark.json (default: all); with a command, its name")
      ->type_name("");
  check
      ->add_option("--config", options.config, "Read checks from this file (default tidemark.json)")
      ->type_name("FILE");
  for (const CheckSetting& setting : check_settings()) {
    add_setting(*check, setting, options);
  }
  const auto add_file = [&](const std::string& name, std::string& into, const std::string& what) {
    check->add_option(name, into, what)->type_name("FILE")->group("Reports");
  };
  add_file("--junit", options.junit, "Write a JUnit report; - is the standard output");
  add_file("--markdown", options.markdown, "Write a comment for a pull request");
  add_file("--json", options.json, "Write everything as one JSON object (docs/output.md)");
  check->footer(
      "Everything after -- is the command. Exit codes: 0 within its budgets, 1 a budget is\n"
      "exceeded, 3 the command failed or could not be run, 4 cannot tell: run it for longer.\n\n"
      "Examples:\n"
      "  tidemark check --max-growth 1MiB/step --warmup 20steps -- python train.py\n"
      "  tidemark check --max-peak 4GiB --max-retained 0 --timeout 10min -- ./train.sh\n"
      "  tidemark check --baseline base.json --update-baseline --jobs 3 -- ./train.sh\n"
      "  tidemark check                      # all checks of tidemark.json");
  return check;
}

}  // namespace tidemark::cli
