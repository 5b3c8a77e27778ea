// SPDX-License-Identifier: Apache-2.0
#include "monitor/roles/command.h"

#include <algorithm>
#include <array>

#include "common/text.h"

namespace tidemark::monitor {
namespace {

using Words = std::span<const std::string>;

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// "python", "python3", "python3.13", "python3.13t", "pypy3.10", "python3-dbg".
bool is_python(std::string_view name) {
  for (const std::string_view stem : {"python", "pypy"}) {
    if (!name.starts_with(stem)) {
      continue;
    }
    name.remove_prefix(stem.size());
    const std::size_t version = std::min(name.find_first_not_of("0123456789."), name.size());
    const std::string_view suffix = name.substr(version);
    return suffix.empty() || suffix == "t" || suffix == "d" || suffix == "-dbg";
  }
  return false;
}

bool is_shell(std::string_view name) {
  constexpr std::array<std::string_view, 9> kShells = {"sh",  "bash", "dash", "zsh",    "ksh",
                                                       "ash", "fish", "tcsh", "busybox"};
  return contains(kShells, name);
}

std::string_view word_at(Words words, std::size_t at) {
  return at < words.size() ? std::string_view(words[at]) : std::string_view();
}

Words words_after(Words words, std::size_t at) {
  return at < words.size() ? words.subspan(at + 1) : Words();
}

void parse_python(Words argv, Command& command) {
  constexpr std::array<std::string_view, 3> kWithValue = {"-X", "-W", "--check-hash-based-pycs"};
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const std::string_view word = argv[i];
    if (contains(kWithValue, word)) {
      ++i;
      continue;
    }
    if (word.size() < 2 || word[0] != '-') {
      command.script = word == "-" ? std::string_view() : word;
      command.arguments = words_after(argv, i);
      return;
    }
    if (word[1] == '-' || word[1] == 'X' || word[1] == 'W') {
      continue;
    }
    // One-letter options may be joined; what follows -c or -m ends them: "-um", "-mtimeit".
    const std::size_t ends = word.find_first_of("cm", 1);
    if (ends == std::string_view::npos) {
      continue;
    }
    const bool joined = ends + 1 < word.size();
    const std::size_t at = joined ? i : i + 1;
    (word[ends] == 'c' ? command.inline_code : command.module) =
        joined ? word.substr(ends + 1) : word_at(argv, at);
    command.arguments = words_after(argv, at);
    return;
  }
}

void parse_shell(Words argv, Command& command) {
  constexpr std::array<std::string_view, 6> kWithValue = {"-o", "+o",       "-O",
                                                          "+O", "--rcfile", "--init-file"};
  bool code = false;
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const std::string_view word = argv[i];
    if (contains(kWithValue, word)) {
      ++i;
    } else if (word.size() >= 2 && (word[0] == '-' || word[0] == '+')) {
      const bool letters = word[0] == '-' && word[1] != '-';
      code = code || (letters && word.find('c') != std::string_view::npos);
      // "-euo pipefail": the value of a joined o.
      i += letters && word.back() == 'o' ? 1U : 0U;
    } else {
      (code ? command.inline_code : command.script) = word;
      command.arguments = words_after(argv, i);
      return;
    }
  }
}

// Process titles overwrite argv and leave a tail of empty words.
Words without_empty_tail(Words argv) {
  while (!argv.empty() && argv.back().empty()) {
    argv = argv.first(argv.size() - 1);
  }
  return argv;
}

}  // namespace

Command parse_command(Words argv) {
  argv = without_empty_tail(argv);
  Command command;
  if (argv.empty()) {
    return command;
  }
  std::string_view name = basename_of(argv[0]);
  if (name.starts_with('-')) {
    name.remove_prefix(1);
  }
  if (is_python(name)) {
    command.python = true;
    parse_python(argv, command);
    command.program = basename_of(command.script);
  } else if (is_shell(name)) {
    command.shell = true;
    parse_shell(argv, command);
    command.program = name;
  } else {
    const bool title = argv.size() == 1 && argv[0].find(' ') != std::string::npos;
    command.program = title ? std::string_view(argv[0]) : name;
    command.arguments = words_after(argv, 0);
  }
  return command;
}

bool has_verb(const Command& command, std::string_view verb) {
  bool value_may_follow = false;
  for (const std::string& word : command.arguments) {
    if (word == verb) {
      return true;
    }
    const bool option = word.starts_with('-');
    if (!option && !value_may_follow) {
      return false;
    }
    value_may_follow = option && word.find('=') == std::string::npos;
  }
  return false;
}

}  // namespace tidemark::monitor
