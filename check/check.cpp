// SPDX-License-Identifier: Apache-2.0
#include "check/check.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "check/config.h"
#include "check/history.h"
#include "check/one_check.h"
#include "check/outputs.h"
#include "common/exit_code.h"
#include "common/io.h"
#include "common/messages.h"
#include "common/text.h"
#include "monitor/roles/command.h"
#include "report/output.h"

namespace tidemark::check {
namespace {

constexpr std::string_view kStdout = "-";

bool runs_on_github() {
  const char* const value = std::getenv("GITHUB_ACTIONS");  // NOLINT(concurrency-mt-unsafe)
  return value != nullptr && std::string_view(value) == "true";
}

void print(const std::string& text) {
  const WriteSignalBlock no_signal(SIGPIPE);  // the reports are still to be written
  // A closed stderr leaves nobody to tell.
  (void)write_all(STDERR_FILENO, runs_on_github() ? without_workflow_commands(text) : text);
}

// Whether a part of a shell's code does no work of its own.
bool is_preparation(std::string_view word) {
  static constexpr std::array<std::string_view, 14> kWords{
      "cd",   "exit", ":",      ".",      "set",   "export", "source",
      "echo", "true", "printf", "ulimit", "umask", "trap",   "wait"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

std::vector<std::string> words_in(std::string_view command) {
  std::vector<std::string> words;
  for (const std::string_view word : split(command.substr(0, command.find('|')), ' ')) {
    const bool is_variable = words.empty() && word.find('=') != std::string_view::npos;
    if (!word.empty() && !is_variable) {
      words.emplace_back(word);
    }
  }
  return words;
}

// The command that `sh -c CODE` is about: the last that does some work. Empty: that is not clear.
std::vector<std::string> command_in(std::string_view code) {
  static constexpr std::array<std::string_view, 5> kCompound{"for", "while", "until", "if", "case"};
  code = code.substr(0, code.find_first_of("'\"$`("));  // from there on it may be anything
  std::vector<std::string> last;
  while (!code.empty()) {
    const std::size_t end = std::min(code.find_first_of(";\n&"), code.size());
    std::vector<std::string> words = words_in(trim(code.substr(0, end)));
    code.remove_prefix(std::min(end + 1, code.size()));
    if (words.empty() || is_preparation(words.front())) {
      continue;
    }
    if (std::find(kCompound.begin(), kCompound.end(), words.front()) != kCompound.end()) {
      return {};
    }
    last = std::move(words);
  }
  return last;
}

// What a check is called when nobody names it: its script or module, else its program.
std::string name_of_command(const std::vector<std::string>& argv) {
  const monitor::Command command = monitor::parse_command(argv);
  if (command.shell && !command.inline_code.empty()) {
    const std::vector<std::string> words = command_in(command.inline_code);
    const bool is_shell = words.empty() || monitor::parse_command(words).shell;
    return is_shell ? std::string(basename_of(argv.front())) : name_of_command(words);
  }
  const std::string_view name = command.module.empty() ? command.program : command.module;
  return std::string(name.empty() ? basename_of(argv.front()) : name);
}

// The one check of a command line.
Result<CheckConfig> config_of_command(const CheckOptions& options) {
  CheckConfig config;
  CheckSpec spec;
  spec.command = options.command;
  spec.name = options.names.empty() ? name_of_command(options.command) : options.names.front();
  TIDEMARK_TRY(apply_settings(spec, options.settings));
  if (const std::string problem = problem_with(spec); !problem.empty()) {
    return Error{Errc::kUsage, problem};
  }
  // Suppressions belong to a file; of other checks in it nothing is wanted here.
  if (!options.config.empty()) {
    TIDEMARK_TRY_ASSIGN(auto file, read_check_config(options.config, {}));
    config.suppressions = std::move(file.suppressions);
  }
  config.checks.push_back(std::move(spec));
  return config;
}

Result<CheckConfig> config_of_file(const CheckOptions& options) {
  const std::string path = options.config.empty() ? std::string(kConfigName) : options.config;
  auto config = read_check_config(path, options.settings);
  if (!config || options.names.empty()) {
    return config;
  }
  std::vector<CheckSpec> chosen;
  for (const std::string& name : options.names) {
    const auto found = std::find_if(config->checks.begin(), config->checks.end(),
                                    [&](const CheckSpec& spec) { return spec.name == name; });
    if (found == config->checks.end()) {
      std::vector<std::string> known;
      for (const CheckSpec& spec : config->checks) {
        known.push_back(escape_text(spec.name));
      }
      return Error{Errc::kUsage, fmt::format("{} has no check '{}', only {}", path,
                                             escape_text(name), fmt::join(known, ", "))};
    }
    chosen.push_back(*found);
  }
  config->checks = std::move(chosen);
  return config;
}

// A run file that several checks would write to, each over the one before, becomes one of each.
void part_run_files(std::vector<CheckSpec>& checks) {
  std::map<std::string, int> uses;
  for (const CheckSpec& spec : checks) {
    ++uses[spec.output];
  }
  for (CheckSpec& spec : checks) {
    if (!spec.output.empty() && uses[spec.output] > 1) {
      std::string tag = spec.name;
      std::replace(tag.begin(), tag.end(), '/', '_');
      spec.output = tagged_output(spec.output, tag);
    }
  }
}

struct OutputFile {
  std::string path;
  std::string (*text)(std::span<const CheckResult> results);
};

std::string json_line(std::span<const CheckResult> results) { return check_json(results) + '\n'; }

std::vector<OutputFile> output_files(const CheckOptions& options) {
  std::vector<OutputFile> files{
      {options.junit, check_junit}, {options.markdown, check_markdown}, {options.json, json_line}};
  std::erase_if(files, [](const OutputFile& file) { return file.path.empty(); });
  return files;
}

// What cannot be written is told before hours of work, not after them.
Status try_output_files(const CheckOptions& options, const CheckConfig& config) {
  for (const OutputFile& file : output_files(options)) {
    TIDEMARK_TRY(report::can_write_report(file.path));
  }
  for (const CheckSpec& spec : config.checks) {
    if (!spec.history.empty()) {
      TIDEMARK_TRY(can_append_history(spec.history));
    }
    if (spec.update_baseline) {
      TIDEMARK_TRY(report::can_write_report(spec.baseline));
    }
  }
  return ok();
}

bool write_output_files(const CheckOptions& options, std::span<const CheckResult> results) {
  const WriteSignalBlock no_signal(SIGPIPE);  // one of them may go to a reader that has gone
  bool all = true;
  for (const OutputFile& file : output_files(options)) {
    if (const Status written = report::write_report_file(file.path, file.text(results)); !written) {
      print_error(written.error());
      all = false;
    }
  }
  return all;
}

std::string usage_hint(const CheckOptions& options, const Error& error) {
  if (options.command.empty() && options.config.empty() && error.code == Errc::kNotFound) {
    return "give a command, tidemark check -- COMMAND, or describe your checks in tidemark.json "
           "(docs/check.md)";
  }
  if (options.command.empty() && !options.names.empty() && error.code == Errc::kUsage) {
    return "a command to check stands after --: tidemark check -- " + shell_line(options.names);
  }
  return "see tidemark check --help";
}

}  // namespace

int run_check(const CheckOptions& options) {
  auto config = options.command.empty() ? config_of_file(options) : config_of_command(options);
  if (!config) {
    print_error(config.error(), usage_hint(options, config.error()));
    const bool is_io = config.error().sys_errno != 0;
    return is_io && !options.config.empty() ? kExitTarget : kExitUsage;
  }
  part_run_files(config->checks);
  if (const Status writable = try_output_files(options, *config); !writable) {
    print_error(writable.error());
    return kExitTarget;
  }
  const bool stdout_is_ours =
      options.json == kStdout || options.junit == kStdout || options.markdown == kStdout;
  const report::Glyphs glyphs = report::glyphs_of_locale();
  std::vector<CheckResult> results;
  for (const CheckSpec& spec : config->checks) {
    results.push_back(check_one(spec, {config->suppressions, stdout_is_ours}));
    print('\n' + check_text(results.back(), glyphs));
    const std::optional<CheckRun>& run = results.back().shown;
    if (run && run->ending.was_told_to_stop) {
      break;  // whoever stops one of them wants to stop
    }
  }
  if (results.size() > 1) {
    print('\n' + check_summary(results));
  }
  if (runs_on_github()) {
    const WriteSignalBlock no_signal(SIGPIPE);
    (void)write_all(STDERR_FILENO, github_annotations(results));
  }
  const bool wrote_all = write_output_files(options, results);
  return wrote_all ? exit_code_of(status_of(results)) : kExitTarget;
}

}  // namespace tidemark::check
