// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.h"

namespace CLI {  // NOLINT(readability-identifier-naming): its own name
class App;
class Option;
}  // namespace CLI

// The command line: options, help and usage errors. CLI11 stays behind it, in one file, because it
// takes seconds to compile.
namespace tidemark::cli {

// An option that was added, for what goes beyond its value.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option excludes(const Option& other) const;
  Option needs(const Option& other) const;
  Option required() const;
  // Below which heading it stands in the help.
  Option group(const std::string& heading) const;

 private:
  CLI::Option* option_;
};

// One subcommand. What it refers to must live as long as its run function, so commands keep their
// options in that function:
//
//   const auto options = std::make_shared<FindOptions>();
//   command.flag("--json", options->json, "Print one JSON object");
//   command.run_by([options] { return run_find(*options); });
class Command {
 public:
  Command(CLI::App& app, std::string name) : app_(app), name_(std::move(name)) {}

  // Names are "--json" or "-p,--pid"; `type` is what the help shows for the value.
  Option flag(const std::string& name, bool& into, const std::string& help);
  Option flag(const std::string& name, std::function<void()> set, const std::string& help);
  Option text(const std::string& name, const std::string& type, std::string& into,
              const std::string& help);
  // One of `allowed`.
  Option choice(const std::string& name, const std::vector<std::string>& allowed, std::string& into,
                const std::string& help);
  Option number(const std::string& name, std::uint64_t& into, std::uint64_t least,
                std::uint64_t most, const std::string& help);
  // May be given several times; without dashes in its name: by its place. They are added to `into`.
  Option process_ids(const std::string& name, std::vector<int>& into, const std::string& help);
  // An error of `take` is the user's, who is told its text.
  Option value(const std::string& name, const std::string& type,
               std::function<Status(const std::string& text)> take, const std::string& help);
  // The same with a parser; `Into` is a T or an optional one.
  template <typename T, typename Into>
  Option value(const std::string& name, const std::string& type,
               Result<T> (*parse)(std::string_view), Into& into, const std::string& help) {
    const auto take = [parse, &into](const std::string& text) -> Status {
      auto parsed = parse(text);
      if (!parsed) {
        return parsed.error();
      }
      into = *std::move(parsed);
      return ok();
    };
    return value(name, type, take, help);
  }

  // Without a name on the command line: by its place.
  Option argument(const std::string& name, const std::string& type, std::string& into,
                  const std::string& help);
  Option arguments(const std::string& name, std::vector<std::string>& into,
                   const std::string& help);
  // What stands after "--"; a command that does not ask for it takes nothing there.
  void take_rest(std::vector<std::string>& into) { rest_ = &into; }
  // The name of a program where no "--" stands before it is taken for a command line whose "--" was
  // forgotten.
  // `takes_names`: whether a word among these arguments is something else.
  using WordTest = std::function<bool(const std::vector<std::string>& arguments)>;
  void notice_forgotten_dashes(WordTest takes_names = {}) {
    notices_forgotten_dashes_ = true;
    takes_names_ = std::move(takes_names);
  }

  // Of an option that others have added.
  void remove(const std::string& name);
  void describe(const std::string& name, const std::string& help);

  // Notes and examples at the end of the help.
  void footer(const std::string& text);
  // What it does; the exit code. `problem` looks at all options together and says what is wrong
  // with them, "" when nothing is.
  void run_by(std::function<int()> run, std::function<std::string()> problem = {});

 private:
  friend class Program;

  CLI::App& app_;
  std::string name_;
  std::vector<std::string>* rest_ = nullptr;
  bool notices_forgotten_dashes_ = false;
  WordTest takes_names_;
  std::function<int()> run_;
  std::function<std::string()> problem_;
};

// The program with its subcommands.
class Program {
 public:
  Program();
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Command& add(const std::string& name, const std::string& help);
  // Each with what it is for, in the order of the help.
  std::vector<std::pair<std::string, std::string>> commands() const;
  // What the program does when it is given nothing at all; the exit code.
  void run_alone_by(std::function<int()> run) { run_alone_ = std::move(run); }
  // Parses the command line and runs what it asks for. Help and usage errors are printed here.
  int run(int argc, char** argv);

 private:
  int refuse(const std::string& cli_error) const;
  int refuse_without_command(const std::vector<std::string>& words) const;

  std::unique_ptr<CLI::App> app_;
  std::list<Command> commands_;
  std::function<int()> run_alone_;
};

}  // namespace tidemark::cli
