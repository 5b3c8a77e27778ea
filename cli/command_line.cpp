// SPDX-License-Identifier: Apache-2.0
// The only file that sees CLI11.
#include "cli/command_line.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cli/exit_code.h"
#include "cli/messages.h"
#include "common/text.h"

namespace tidemark::cli {
namespace {

constexpr std::int64_t kShortestIntervalNs = 50'000'000;

// Feeds the text of an option to one of our parsers; its error becomes CLI11's.
template <typename T>
std::function<void(const std::string&)> parsed(Result<T> (*parse)(std::string_view),
                                               std::function<void(T)> store) {
  return [parse, store](const std::string& text) {
    auto value = parse(text);
    if (!value) {
      throw CLI::ValidationError(value.error().what, kExitUsage);
    }
    store(*std::move(value));
  };
}

Result<monitor::PssMode> parse_pss_mode(std::string_view text) {
  if (text == "off") {
    return monitor::PssMode::kOff;
  }
  if (text == "auto") {
    return monitor::PssMode::kAuto;
  }
  if (text == "always") {
    return monitor::PssMode::kAlways;
  }
  return Error{Errc::kUsage, "--pss is off, auto or always, not '" + std::string(text) + "'"};
}

void add_target(CLI::App& app, TargetOptions& target) {
  app.add_option("-p,--pid", target.pids,
                 "Watch this process with all its descendants (repeatable)")
      ->type_name("PID")
      ->check([](const std::string& text) {
        const auto pid = parse_number<pid_t>(text);
        return pid && *pid > 0 ? std::string() : "'" + text + "' is not a process id";
      });
  app.add_flag("--find-training", target.find_training,
               "Find the training job on this machine and watch it");
  app.add_flag("--system", target.system, "Watch every process of the machine");
  app.footer("Everything after -- is a command to start and watch.");
}

// CLI11 takes what follows "--" for positional arguments; ours is a command with options of its
// own, so it is cut off before CLI11 sees it.
std::vector<std::string> cut_command(std::vector<std::string>& arguments) {
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  if (dashes == arguments.end()) {
    return {};
  }
  std::vector<std::string> command(dashes + 1, arguments.end());
  arguments.erase(dashes, arguments.end());
  return command;
}

CLI::App* add_find(CLI::App& app, FindOptions& options) {
  CLI::App* find = app.add_subcommand("find", "Which process is the training job, and why");
  find->add_flag("--json", options.json, "Print one JSON object");
  find->add_flag("--all", options.all, "Also show candidates with weak evidence");
  find->add_flag("--no-redact", options.no_redact, "Show secrets in command lines");
  find->footer("Example:\n  tidemark find");
  return find;
}

CLI::App* add_monitor(CLI::App& app, MonitorOptions& options) {
  CLI::App* monitor =
      app.add_subcommand("monitor", "Watch a process tree: memory by process, role and in total");
  add_target(*monitor, options.target);
  monitor
      ->add_option_function<std::string>(
          "-i,--interval",
          parsed<std::int64_t>(parse_duration_ns,
                               [&](std::int64_t ns) {
                                 if (ns < kShortestIntervalNs) {
                                   throw CLI::ValidationError("--interval: the shortest is 50ms",
                                                              kExitUsage);
                                 }
                                 options.interval_ns = ns;
                               }),
          "Time between two samples, 50ms or more (default 1s)")
      ->type_name("TIME");
  monitor
      ->add_option_function<std::string>(
          "-d,--duration",
          parsed<std::int64_t>(parse_duration_ns,
                               [&](std::int64_t ns) { options.duration_ns = ns; }),
          "Stop watching after this time (default: when the target ends)")
      ->type_name("TIME");
  monitor->add_option("-o,--output", options.output, "Record into this run file (*.tidemark)")
      ->type_name("FILE");
  monitor->add_flag("--force", options.force, "Replace an existing run file");
  CLI::Option* json =
      monitor->add_flag("--json", options.json, "Print one JSON object per sample and event");
  monitor->add_flag("--plain", options.plain, "Print lines (the default)")->excludes(json);
  monitor
      ->add_option_function<std::string>(
          "--pss",
          parsed<monitor::PssMode>(parse_pss_mode,
                                   [&](monitor::PssMode mode) { options.pss = mode; }),
          "Read how pages are shared: off, auto (at most 1 % of the time), always")
      ->type_name("off|auto|always");
  monitor
      ->add_option_function<std::string>(
          "--warn-growth",
          [&](const std::string& text) {
            if (text == "off") {
              options.warn = false;
              return;
            }
            parsed<Rate>(parse_rate, [&](Rate rate) { options.warn_growth = rate; })(text);
          },
          "Warn when the tree grows faster, for example 200MB/10s or 1MiB/step "
          "(default: 5 % of the limit per minute; off)")
      ->type_name("RATE");
  monitor
      ->add_option("--step-regex", options.step_regex,
                   "Read step numbers from the output of the command, for example 'Step +(\\d+)'")
      ->type_name("REGEX");
  monitor
      ->add_option("--log-file", options.log_file,
                   "With --step-regex: read steps from this log instead")
      ->type_name("FILE");
  monitor->add_flag_callback(
      "--no-redact", [&] { options.redact = false; }, "Keep secrets in command lines");
  monitor->footer(
      "Everything after -- is a command to start and watch; its exit status is passed on.\n\n"
      "Examples:\n"
      "  tidemark monitor --find-training -o run.tidemark\n"
      "  tidemark monitor --pid 1234 --duration 5min\n"
      "  tidemark monitor --step-regex 'Step +(\\d+)' -- python train.py");
  return monitor;
}

CLI::App* add_export(CLI::App& app, ExportOptions& options) {
  CLI::App* command = app.add_subcommand(
      "export", "Convert a recording (run file, CSV, mprof, psrecord, JSON series)");
  command->get_formatter()->label("REQUIRED", "");
  command->add_option("FILE", options.input, "The recording; - reads text formats from stdin")
      ->required();
  command->add_option("-f,--format", options.format, "csv, jsonl or tidemark (default csv)")
      ->check(CLI::IsMember({"csv", "jsonl", "tidemark"}).description(""));
  command->add_option("-o,--output", options.output, "Write here instead of stdout")
      ->type_name("FILE");
  command->add_flag("--force", options.force, "Replace an existing file");
  command->footer("Example:\n  tidemark export run.tidemark --format csv -o run.csv");
  return command;
}

// Empty when the target is fine, else what is wrong with it.
std::string problem_with(const TargetOptions& target, bool has_dashes) {
  const int given = (target.pids.empty() ? 0 : 1) + (target.find_training ? 1 : 0) +
                    (target.system ? 1 : 0) + (has_dashes ? 1 : 0);
  if (has_dashes && target.command.empty()) {
    return "nothing stands after --";
  }
  if (given == 0) {
    return "say what to watch: --pid PID, --find-training, --system or -- COMMAND";
  }
  return given > 1 ? "--pid, --find-training, --system and -- COMMAND exclude each other" : "";
}

std::string problem_with(const MonitorOptions& options) {
  if (!options.log_file.empty() && options.step_regex.empty()) {
    return "--log-file needs --step-regex to know what a step looks like";
  }
  if (!options.step_regex.empty() && options.log_file.empty() && options.target.command.empty()) {
    return "--step-regex reads the output of -- COMMAND; of a running process give its --log-file";
  }
  return "";
}

Command usage_error(std::string_view what, std::string_view command) {
  print_error(what, std::string("see tidemark ") + std::string(command) + " --help");
  return kExitUsage;
}

}  // namespace

std::string_view version() { return TIDEMARK_VERSION; }

Command parse_command_line(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool has_dashes = std::find(arguments.begin(), arguments.end(), "--") != arguments.end();
  FindOptions find_options;
  MonitorOptions monitor_options;
  ExportOptions export_options;
  monitor_options.target.command = cut_command(arguments);

  CLI::App app("Tells whether a training job's memory warms up, spikes or leaks, and where.",
               "tidemark");
  app.set_version_flag("--version", std::string("tidemark ") + std::string(version()));
  app.require_subcommand(1);
  CLI::App* find = add_find(app, find_options);
  CLI::App* monitor = add_monitor(app, monitor_options);
  add_export(app, export_options);

  try {
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      return app.exit(error);  // --help, --version
    }
    const auto chosen = app.get_subcommands();
    return usage_error(error.what(), chosen.empty() ? "" : chosen.front()->get_name());
  }

  if (app.got_subcommand(monitor)) {
    std::string problem = problem_with(monitor_options.target, has_dashes);
    problem = problem.empty() ? problem_with(monitor_options) : problem;
    return problem.empty() ? Command(std::move(monitor_options)) : usage_error(problem, "monitor");
  }
  if (has_dashes) {
    return usage_error("this command takes nothing after --", "");
  }
  return app.got_subcommand(find) ? Command(find_options) : Command(std::move(export_options));
}

}  // namespace tidemark::cli
