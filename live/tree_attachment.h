// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/records.h"
#include "common/result.h"
#include "live/attach_targets.h"
#include "live/profile.h"
#include "profiler/collect/attached.h"

namespace tidemark::live {

// The tracer in the processes of a tree that runs already: in those that are wanted at the start,
// and in what is started later. Not thread-safe.
class TreeAttachment {
 public:
  // To at least one of those that are wanted; the error is that of the most important one.
  static Result<TreeAttachment> start(const AttachTargets& targets, const ProfileOptions& options);

  // Where the trace files are.
  const collect::AttachedProcesses& processes() const { return attached_; }
  // What was done at the start, for people: a line for each process.
  const std::vector<std::string>& notes() const { return notes_; }

  // Attaches to what a tick has new, and once more to what refused; looks for new libraries.
  void add_tick(const Tick& tick);
  // Undoes it: `traced` are all processes that have a trace file.
  void detach(const std::vector<pid_t>& traced);
  // What could not be done since the last call, as sentences.
  std::vector<std::string> take_problems();

 private:
  // A process that could not be attached to yet: it may be about to start a program, or in a place
  // where it can load nothing.
  struct Waiting {
    int attempts = 0;
    std::int64_t next_ns = 0;
    std::string reason;
  };

  TreeAttachment(collect::AttachedProcesses attached, const ProfileOptions& options)
      : options_(options), attached_(std::move(attached)) {}
  void note_success(pid_t pid, std::int64_t took_ns);
  void try_again();
  void give_up(pid_t pid, const std::string& reason);
  void note_problem(std::string problem);

  const ProfileOptions& options_;
  const SystemClock clock_;
  collect::AttachedProcesses attached_;
  std::map<pid_t, Waiting> waiting_;
  std::size_t exited_ = 0;  // before they could be attached to
  std::vector<std::string> notes_;
  std::vector<std::string> problems_;  // all that were ever noted
  std::size_t taken_ = 0;              // of these
};

}  // namespace tidemark::live
