// SPDX-License-Identifier: Apache-2.0
// The only file that sees CLI11.
#include "cli/command.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "common/exit_code.h"
#include "common/messages.h"
#include "common/text.h"
#include "common/version.h"

namespace tidemark::cli {
namespace {

int usage_error(std::string_view what, std::string_view command) {
  print_error(what, fmt::format("see tidemark {}{}--help", command, command.empty() ? "" : " "));
  return kExitUsage;
}

// CLI11 takes what follows "--" for positional arguments; ours is a command with options of its
// own, so it is cut off before CLI11 sees it.
std::optional<std::vector<std::string>> cut_rest(std::vector<std::string>& arguments) {
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  if (dashes == arguments.end()) {
    return std::nullopt;
  }
  std::vector<std::string> rest(dashes + 1, arguments.end());
  arguments.erase(dashes, arguments.end());
  return rest;
}

bool is_option(std::string_view word) { return word.size() > 1 && word.front() == '-'; }

bool is_pid(const std::string& word) { return parse_number<int>(word).value_or(0) > 0; }

bool file_exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// A script or a binary: recordings may be marked as executable too, as on a USB stick.
bool is_program_file(const std::string& path) {
  std::array<char, 4> start{};
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), start.size());
  const std::string_view magic(start.data(), static_cast<std::size_t>(file.gcount()));
  return magic.starts_with("#!") || magic ==
                                        "\x7f"
                                        "ELF";
}

// What a shell would run by this name.
bool is_program(const std::string& word) {
  if (word.find('/') != std::string::npos) {
    return ::access(word.c_str(), X_OK) == 0 && is_program_file(word);
  }
  const char* const path = std::getenv("PATH");
  if (word.empty() || path == nullptr || file_exists(word)) {
    return false;
  }
  for (const std::string_view folder : split(path, ':')) {
    const std::string file = fmt::format("{}/{}", folder, word);
    std::error_code none;
    if (std::filesystem::is_regular_file(file, none) && ::access(file.c_str(), X_OK) == 0) {
      return true;
    }
  }
  return false;
}

// Where the first word stands that is no option and no value of one. nullopt: there is none, or it
// stands behind an option that we do not know.
std::optional<std::size_t> first_word(const CLI::App& command,
                                      const std::vector<std::string>& arguments) {
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (!is_option(argument)) {
      return i;
    }
    const std::size_t sign = argument.find('=');
    const CLI::Option* const option = command.get_option_no_throw(argument.substr(0, sign));
    if (option == nullptr) {
      return std::nullopt;
    }
    if (sign == std::string::npos && option->get_items_expected_max() > 0) {
      ++i;
    }
  }
  return std::nullopt;
}

// The command line as it was meant, where "--" is missing; "" where it is not.
std::string with_forgotten_dashes(const CLI::App& command, std::vector<std::string> arguments) {
  const auto at = first_word(command, arguments);
  if (!at || !is_program(arguments[*at])) {
    return "";
  }
  arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(*at), "--");
  return "tidemark " + shell_line(arguments);
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  return names;
}

int refuse_option(const std::string& word, const CLI::App& app, const std::string& command) {
  const std::string name = word.substr(0, word.find('='));
  const std::string nearest = nearest_name(name, option_names(app));
  const std::string what =
      fmt::format("tidemark{}{} has no option {}", command.empty() ? "" : " ", command, name);
  if (nearest.empty()) {
    return usage_error(what, command);
  }
  print_error(what, fmt::format("did you mean `{}`?", nearest));
  return kExitUsage;
}

}  // namespace

Option Option::excludes(const Option& other) const {
  option_->excludes(other.option_);
  return *this;
}

Option Option::needs(const Option& other) const {
  option_->needs(other.option_);
  return *this;
}

Option Option::required() const {
  option_->required();
  return *this;
}

Option Option::group(const std::string& heading) const {
  option_->group(heading);
  return *this;
}

Option Command::flag(const std::string& name, bool& into, const std::string& help) {
  return Option(app_.add_flag(name, into, help));
}

Option Command::flag(const std::string& name, std::function<void()> set, const std::string& help) {
  return Option(app_.add_flag_callback(name, std::move(set), help));
}

Option Command::text(const std::string& name, const std::string& type, std::string& into,
                     const std::string& help) {
  return Option(app_.add_option(name, into, help)->type_name(type));
}

Option Command::choice(const std::string& name, const std::vector<std::string>& allowed,
                       std::string& into, const std::string& help) {
  return Option(app_.add_option(name, into, help)
                    ->type_name(fmt::format("{}", fmt::join(allowed, "|")))
                    ->check(CLI::IsMember(allowed).description("")));
}

Option Command::number(const std::string& name, std::uint64_t& into, std::uint64_t least,
                       std::uint64_t most, const std::string& help) {
  return Option(app_.add_option(name, into, help)
                    ->type_name("N")
                    ->check([least, most](const std::string& text) -> std::string {
                      const auto given = parse_number<std::uint64_t>(text);
                      return given && *given >= least && *given <= most
                                 ? ""
                                 : fmt::format("'{}' is not a number from {} to {}",
                                               escape_text(text), least, most);
                    }));
}

Option Command::process_ids(const std::string& name, std::vector<int>& into,
                            const std::string& help) {
  const auto add = [&into](const std::vector<int>& pids) {
    into.insert(into.end(), pids.begin(), pids.end());
  };
  const auto problem = [](const std::string& text) -> std::string {
    if (is_pid(text)) {
      return "";
    }
    return file_exists(text) ? fmt::format(
                                   "'{0}' is a file, not a process id; tidemark track {0} "
                                   "judges a recording, tidemark monitor --replay {0} "
                                   "plays it",
                                   text)
                             : fmt::format("'{}' is not a process id", text);
  };
  return Option(app_.add_option_function<std::vector<int>>(name, add, help)
                    ->type_name(name.starts_with('-') ? "PID" : "")
                    ->check(problem));
}

Option Command::value(const std::string& name, const std::string& type,
                      std::function<Status(const std::string& text)> take,
                      const std::string& help) {
  const std::string long_name = name.substr(name.find("--"));
  const auto checked = [take = std::move(take), long_name](const std::string& text) {
    if (const Status status = take(text); !status) {
      const std::string& what = status.error().what;
      throw CLI::ValidationError(what.starts_with("--") ? what : long_name + ": " + what,
                                 kExitUsage);
    }
  };
  return Option(app_.add_option_function<std::string>(name, checked, help)->type_name(type));
}

Option Command::argument(const std::string& name, const std::string& type, std::string& into,
                         const std::string& help) {
  return Option(app_.add_option(name, into, help)->type_name(type));
}

Option Command::arguments(const std::string& name, std::vector<std::string>& into,
                          const std::string& help) {
  return Option(app_.add_option(name, into, help)->type_name(""));
}

void Command::remove(const std::string& name) { app_.remove_option(app_.get_option(name)); }

void Command::describe(const std::string& name, const std::string& help) {
  app_.get_option(name)->description(help);
}

void Command::footer(const std::string& text) { app_.footer(text); }

void Command::run_by(std::function<int()> run, std::function<std::string()> problem) {
  run_ = std::move(run);
  problem_ = std::move(problem);
}

Program::Program()
    : app_(std::make_unique<CLI::App>(
          "Tells whether a training job's memory warms up, spikes or leaks, and where.",
          "tidemark")) {
  app_->set_version_flag("--version", fmt::format("tidemark {}", version()));
  app_->require_subcommand(1);
  app_->get_formatter()->label("REQUIRED", "");
  app_->footer(
      "Without a subcommand it finds the training job, watches it for 20 s and answers in three "
      "lines.");
}

Program::~Program() = default;

Command& Program::add(const std::string& name, const std::string& help) {
  return commands_.emplace_back(*app_->add_subcommand(name, help), name);
}

std::vector<std::pair<std::string, std::string>> Program::commands() const {
  std::vector<std::pair<std::string, std::string>> list;
  for (const Command& command : commands_) {
    list.emplace_back(command.name_, command.app_.get_description());
  }
  return list;
}

// Words that do not begin with a command.
int Program::refuse_without_command(const std::vector<std::string>& words) const {
  const std::string& first = words.front();
  if (is_option(first)) {
    return refuse_option(first, *app_, "");
  }
  std::vector<std::string> names;
  for (const Command& command : commands_) {
    names.push_back(command.name_);
  }
  const std::string nearest = nearest_name(first, names);
  std::string hint = "see tidemark --help";
  if (!nearest.empty()) {
    hint = fmt::format("did you mean `{}`?", nearest);
  } else if (is_pid(first) || (file_exists(first) && !is_program(first))) {
    hint = fmt::format("did you mean `tidemark track {}`?", shell_line({first}));
  } else if (is_program(first)) {
    hint = fmt::format("did you mean `tidemark track -- {}`?", shell_line(words));
  }
  print_error(fmt::format("there is no command '{}'", first), hint);
  return kExitUsage;
}

// What CLI11 has refused. It lists what it did not expect in reverse order; we list it as it was
// typed.
int Program::refuse(const std::string& cli_error) const {
  const auto chosen = app_->get_subcommands();
  const auto before = app_->remaining();
  if (chosen.empty()) {
    return before.empty() ? usage_error(cli_error, "") : refuse_without_command(before);
  }
  const std::string name = chosen.front()->get_name();
  if (!before.empty()) {
    return usage_error(fmt::format("'{}' has to stand after {}", before.front(), name), name);
  }
  const auto words = chosen.front()->remaining();
  const auto option = std::find_if(words.begin(), words.end(), is_option);
  if (option != words.end()) {
    return refuse_option(*option, *chosen.front(), name);
  }
  return usage_error(
      words.empty() ? cli_error : fmt::format("not expected: {}", fmt::join(words, " ")), name);
}

int Program::run(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  auto rest = cut_rest(arguments);
  if (!arguments.empty() && arguments.front() == "help") {  // `help track`, as with other tools
    std::rotate(arguments.begin(), arguments.begin() + 1, arguments.end());
    arguments.back() = "--help";
  }
  if (arguments.empty()) {
    if (!rest) {
      return run_alone_();
    }
    print_error("say what to do with the command",
                fmt::format("did you mean `tidemark track -- {}`?",
                            rest->empty() ? "COMMAND" : shell_line(*rest)));
    return kExitUsage;
  }
  const auto named = std::find_if(commands_.begin(), commands_.end(), [&](const Command& command) {
    return command.name_ == arguments.front();
  });
  if (named != commands_.end() && named->notices_forgotten_dashes_ && !rest &&
      !(named->takes_names_ && named->takes_names_(arguments))) {
    if (const std::string meant = with_forgotten_dashes(named->app_, arguments); !meant.empty()) {
      print_error("put -- before the command to start", meant);
      return kExitUsage;
    }
  }
  try {
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    app_->parse(arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      return app_->exit(error);  // --help, --version
    }
    return error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError) ||
                   app_->get_subcommands().empty()
               ? refuse(error.what())
               : usage_error(error.what(), app_->get_subcommands().front()->get_name());
  }
  const auto chosen = std::find_if(commands_.begin(), commands_.end(),
                                   [](const Command& command) { return command.app_.parsed(); });
  if (rest && chosen->rest_ == nullptr) {
    return usage_error("this command takes nothing after --", chosen->name_);
  }
  if (rest && rest->empty()) {
    return usage_error("nothing stands after --", chosen->name_);
  }
  if (rest) {
    *chosen->rest_ = *std::move(rest);
  }
  const std::string problem = chosen->problem_ ? chosen->problem_() : "";
  return problem.empty() ? chosen->run_() : usage_error(problem, chosen->name_);
}

}  // namespace tidemark::cli
