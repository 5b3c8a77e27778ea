// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tidemark::monitor {

// What a command line runs, as opposed to what it mentions. The views point into the argv that it
// was made from.
struct Command {
  // Basename of what does the work: of the script for an interpreter ("accelerate" for
  // `/usr/bin/python3 /venv/bin/accelerate launch`), else of argv[0]. A login shell's leading '-'
  // is dropped. Empty for `python -m`, `-c` and an interactive interpreter.
  std::string_view program;
  // The words after the program, module or code.
  std::span<const std::string> arguments;

  bool python = false;           // argv[0] is a Python interpreter, of any version and path
  bool shell = false;            // argv[0] is a shell
  std::string_view script;       // path of the script, for python and shells
  std::string_view module;       // python -m MODULE
  std::string_view inline_code;  // python -c CODE, sh -c CODE

  // An interpreter or a shell that was given nothing to run.
  bool interactive() const {
    return (python || shell) && script.empty() && module.empty() && inline_code.empty();
  }
};

// Never fails: an argv that makes no sense gives a Command whose program is all that is known.
// A process title (setproctitle: one word with blanks) is a program of that whole title.
Command parse_command(std::span<const std::string> argv);

// Whether `verb` is the subcommand: "run" of `uv --directory app run train.py`. Only options and
// their values may stand before it.
bool has_verb(const Command& command, std::string_view verb);

// What in a command line sounds like training; empty where nothing does.
struct TrainingWords {
  std::string name;      // of the script or module: "train.py"
  std::string argument;  // "--epochs"
};
TrainingWords training_words(const Command& command);

}  // namespace tidemark::monitor
