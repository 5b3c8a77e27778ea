// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "monitor/roles/command.h"

namespace tidemark::monitor {

// How a command line speaks of training; empty where it does not.
struct TrainingWords {
  std::string name;      // of the script or module: "train.py"
  std::string argument;  // "--epochs"
};

TrainingWords training_words(const Command& command);

}  // namespace tidemark::monitor
