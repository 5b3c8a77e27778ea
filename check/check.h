// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "check/spec.h"

namespace tidemark::check {

struct CheckOptions {
  std::vector<std::string> command;  // empty: the checks of a file
  std::string config;                // that file; empty: tidemark.json here
  std::vector<std::string> names;    // of its checks; empty: all. With a command: its name, if any
  CheckValues settings;              // of the command line, over those of the file

  std::string junit;  // files to write; empty: none, "-": the standard output
  std::string markdown;
  std::string json;
};

// `tidemark check`: runs commands and says whether their memory keeps to its budgets. The exit code
// is the answer.
int run_check(const CheckOptions& options);

}  // namespace tidemark::check
