// SPDX-License-Identifier: Apache-2.0
#include "monitor/roles/training_names.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "common/text.h"

namespace tidemark::monitor {
namespace {

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

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

bool is_training_word(std::string_view word) {
  return std::any_of(kStems.begin(), kStems.end(),
                     [&](std::string_view stem) { return word.starts_with(stem); }) ||
         std::find(kMethods.begin(), kMethods.end(), word) != kMethods.end();
}

bool is_training_name(std::string_view name) {
  std::string word;
  for (const char c : lower(name) + ".") {
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

TrainingWords training_words(const Command& command) {
  TrainingWords words;
  const std::string_view name = command.module.empty() ? command.program : command.module;
  if (is_training_name(name)) {
    words.name = std::string(name);
  }
  for (const std::string& argument : command.arguments) {
    std::string flag = lower(argument.substr(0, argument.find('=')));
    std::replace(flag.begin() + (flag.empty() ? 0 : 1), flag.end(), '_', '-');
    if (std::find(kArguments.begin(), kArguments.end(), flag) != kArguments.end()) {
      words.argument = argument.substr(0, flag.size());
      break;
    }
  }
  return words;
}

}  // namespace tidemark::monitor
