// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "common/records.h"
#include "monitor/roles/command.h"

namespace tidemark::monitor {

// How a rule matches a process.
enum class Match {
  kComm,              // comm is the pattern
  kCommPrefix,        // comm begins with the pattern
  kTitle,             // argv[0] begins with the pattern: a process that renamed itself
  kScript,            // the script's path ends with the pattern, at a '/'
  kScriptFolder,      // the script's path has the pattern in it
  kModule,            // python -m PATTERN
  kCode,              // python -c with the pattern in the code
  kProgram,           // the program is the pattern
  kProgramVerb,       // the program is the pattern and `verb` is its subcommand
  kCompiler,          // the program is the pattern, whatever its target prefix and version suffix
  kShellCommand,      // a shell that runs a script or a -c string
  kInteractiveShell,  // a shell that runs neither
};

// Where in a tree a rule holds.
enum class Scope {
  kAnywhere,
  kAboveJob,  // a process below a training process is not one
  kBelowJob,  // only below a training process or its workers
  kSession,   // like kAnywhere; what is above it and each of its children are separate jobs
  kServer,    // takes jobs: starts a process for each, or trains itself
};

// One row: how to recognise a process and what it then is. Role::kOther means: known, and no part
// of a training job.
struct RoleRule {
  Match match;
  std::string_view pattern;
  std::string_view verb;
  Role role;
  Scope scope;
  std::string_view reason;  // one clause for people
};

// All rules; the first that matches wins.
std::span<const RoleRule> role_rules();

// The rule for a process seen alone; nullptr when none matches. `argv0` may be empty.
const RoleRule* match_rule(const Command& command, std::string_view argv0, std::string_view comm);

}  // namespace tidemark::monitor
