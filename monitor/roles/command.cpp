// SPDX-License-Identifier: Apache-2.0
#include "monitor/roles/command.h"

#include <algorithm>
#include <array>
#include <cctype>

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

// A word of the script's name begins so: train_gpt.py, run-pretraining.py, FinetuneLlama.py.
constexpr std::array<std::string_view, 5> kStems = {"train", "pretrain", "finetun", "retrain",
                                                    "distill"};
constexpr std::array<std::string_view, 10> kMethods = {"sft",  "dpo",   "ppo",  "grpo", "rlhf",
                                                       "lora", "qlora", "tune", "fit",  "finetune"};
constexpr std::array<std::string_view, 12> kArguments = {
    "--epochs",           "--num-epochs",
    "--num-train-epochs", "--max-epochs",
    "--batch-size",       "--per-device-train-batch-size",
    "--learning-rate",    "--lr",
    "--max-steps",        "--train-steps",
    "--max-train-steps",  "--gradient-accumulation-steps"};

bool is_training_word(std::string_view word) {
  return std::any_of(kStems.begin(), kStems.end(),
                     [&](std::string_view stem) { return word.starts_with(stem); }) ||
         contains(kMethods, word);
}

bool is_training_name(std::string_view name) {
  std::string word;
  for (const char c : to_lower(name) + ".") {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      word += c;
      continue;
    }
    // "fine_tune" is two words that say nothing alone.
    if (is_training_word(word)) {
      return true;
    }
    word.clear();
  }
  return false;
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

TrainingWords training_words(const Command& command) {
  TrainingWords words;
  const std::string_view name = command.module.empty() ? command.program : command.module;
  if (is_training_name(name)) {
    words.name = std::string(name);
  }
  for (const std::string& argument : command.arguments) {
    std::string flag = to_lower(argument.substr(0, argument.find('=')));
    std::replace(flag.begin() + (flag.empty() ? 0 : 1), flag.end(), '_', '-');
    if (contains(kArguments, flag)) {
      words.argument = argument.substr(0, flag.size());
      break;
    }
  }
  return words;
}

}  // namespace tidemark::monitor
