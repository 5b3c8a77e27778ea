// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "cli/command.h"
#include "live/watch_options.h"
#include "tracker/run/judged_run.h"

// Options that several commands have, and what can be wrong with them.
namespace tidemark::cli {

// What all commands that watch a target take.
void add_watch(Command& command, live::WatchOptions& options);
// For how long growth is to be expected, and how fast is a leak.
void add_thresholds(Command& command, tracker::JudgeOptions& options);
// The same, and what is judged.
void add_judging(Command& command, tracker::JudgeOptions& options);
void add_limit(Command& command, tracker::JudgeOptions& options, const std::string& help);

// --last-look and --no-last-look.
void add_last_look(Command& command, const std::function<void(bool is_on)>& set);

// Where a recording may stand: a number is a process, unless there is a file of that name.
void take_pid(std::string& input, live::TargetOptions& target);

// How many of --pid, --find-training, --system and -- COMMAND are given; one is right.
int targets_given(const live::TargetOptions& target);
// What is wrong with what is to be watched; "" when nothing is.
std::string watch_problem(const live::WatchOptions& options);
// The first option that is set and that a recording has no use for; "": there is none.
std::string option_for_watching(const live::WatchOptions& options);

}  // namespace tidemark::cli
