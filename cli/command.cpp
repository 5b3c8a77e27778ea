// SPDX-License-Identifier: Apache-2.0
// The only file that sees CLI11.
#include "cli/command.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>

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
                    ->check(CLI::Range(least, most).description("")));
}

Option Command::process_ids(const std::string& name, std::vector<int>& into,
                            const std::string& help) {
  return Option(
      app_.add_option(name, into, help)->type_name("PID")->check([](const std::string& text) {
        const auto pid = parse_number<int>(text);
        return pid && *pid > 0 ? std::string() : "'" + text + "' is not a process id";
      }));
}

Option Command::value(const std::string& name, const std::string& type,
                      std::function<Status(const std::string& text)> take,
                      const std::string& help) {
  const auto checked = [take = std::move(take)](const std::string& text) {
    if (const Status status = take(text); !status) {
      throw CLI::ValidationError(status.error().what, kExitUsage);
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
}

Program::~Program() = default;

Command& Program::add(const std::string& name, const std::string& help) {
  return commands_.emplace_back(*app_->add_subcommand(name, help), name);
}

int Program::run(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  auto rest = cut_rest(arguments);
  try {
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    app_->parse(arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      return app_->exit(error);  // --help, --version
    }
    const auto chosen = app_->get_subcommands();
    return usage_error(error.what(), chosen.empty() ? "" : chosen.front()->get_name());
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
