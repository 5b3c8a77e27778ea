// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "common/result.h"
#include "live/watch_options.h"
#include "monitor/process_tree.h"
#include "monitor/procfs/process_source.h"
#include "monitor/roles/finder.h"
#include "report/track_words.h"

namespace tidemark::live {

// --pid, --find-training or --system, looked up: who is to be watched, and what to tell about it.
struct ResolvedTarget {
  monitor::TreeRoots roots;
  std::optional<monitor::NoPick> no_pick;  // of --find-training: why nobody is watched
  std::string note;                        // "found the trainer: pid 1240 (python3 train.py)"
};

// What an answer is about, for the next command. A command is over when its answer is read, or will
// be soon: we wait for it.
report::JudgedTarget judged_target(const TargetOptions& target, bool is_over);

// The tree of a command that was started by this process: also what it leaves behind, which becomes
// our child because we are its subreaper.
monitor::TreeRoots roots_of_command(const ProcessKey& command, const std::string& proc_root);

// The error says what to try next.
Result<ResolvedTarget> resolve_target(const TargetOptions& target, monitor::ProcessSource& source,
                                      const std::string& proc_root = "/proc");

}  // namespace tidemark::live
