// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/fd.h"
#include "common/result.h"
#include "profiler/collect/preload.h"
#include "profiler/inject/attach.h"
#include "profiler/reader/trace_directory.h"

namespace tidemark::collect {

// Signals that ask to stop wait while one of these lives, so that nothing is left half done.
class StopSignals {
 public:
  enum class Also {
    kNothing,
    kPause,  // Ctrl-Z: not while a process is stopped by us
  };
  explicit StopSignals(Also also);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  bool has_come() const;

 private:
  sigset_t signals_ = {};
  sigset_t before_ = {};
};

// The tracer in processes that ran already. What it did to them is undone when this goes, as far as
// they live. Not thread-safe.
class AttachedProcesses {
 public:
  // Of the first process, which decides where the trace files are: where it has one from before, or
  // in its view of the file system. An error says why it cannot be.
  static Result<AttachedProcesses> attach(pid_t pid, const TraceOptions& trace,
                                          std::int64_t timeout_ns);
  ~AttachedProcesses();
  AttachedProcesses(AttachedProcesses&&) noexcept = default;
  AttachedProcesses& operator=(AttachedProcesses&&) = delete;

  // One process more, whose trace file goes into the same folder. Nothing happens to one that has
  // the tracer in it.
  Status add(pid_t pid, std::int64_t timeout_ns);
  // The same for a process that was forked from one of these, and so has the tracer in it; others
  // are left alone.
  void add_if_forked(pid_t pid);

  // Where the trace files are, and whose they are; nullopt: ours.
  const std::string& directory() const { return folder_.path; }
  std::optional<uid_t> owner() const { return folder_.owner; }
  // Whether the files are those of an earlier run: the tracers rest, and have to be woken.
  bool was_there() const { return folder_.was_there; }
  // What could not be done about a process, in words; "": nothing.
  const std::string& problem() const { return problem_; }
  // Of the process that was added last: how it went, and whether the tracer was loaded into it.
  // Else it was there, and rested.
  const inject::AttachFigures& figures() const { return figures_; }
  bool was_loaded() const { return was_loaded_; }
  // Likewise: it has a file of an earlier tracer, which went when the process called exec.
  bool had_tracer() const { return had_tracer_; }

  // Now and then: lets libraries that were loaded since call the tracer too. What went wrong, in
  // words.
  std::vector<std::string> hook_new_modules();
  // Undoes it, also in processes that were forked from them: `traced` are all that have a trace
  // file. What went wrong, in words.
  std::vector<std::string> detach(const std::vector<pid_t>& traced);

 private:
  struct Folder {
    std::string path;
    std::string seen_as;  // by its processes
    std::optional<uid_t> owner;
    bool was_there = false;
    bool is_of_a_run = true;  // else tracers in it would not notice that we were killed
    std::optional<reader::TraceDirectory> made;
    std::optional<Fd> lock;  // of one that was there
  };

  AttachedProcesses(const TraceOptions& trace, std::int64_t timeout_ns)
      : trace_(trace), timeout_ns_(timeout_ns) {}
  Status choose_folder(pid_t pid);
  Status check_view(pid_t pid) const;
  bool has_file(pid_t pid) const;
  bool is_ours(const inject::Attachment& attachment) const;
  Result<inject::Attachment> load(pid_t pid, std::int64_t timeout_ns,
                                  const std::function<bool()>& is_cancelled);
  Status hook(pid_t pid, inject::Attachment attachment, std::int64_t timeout_ns);

  Folder folder_;
  TraceOptions trace_;
  std::int64_t timeout_ns_;
  std::map<pid_t, inject::Attachment> attached_;
  inject::AttachFigures figures_;
  bool was_loaded_ = false;
  bool had_tracer_ = false;
  std::string problem_;
  std::int64_t next_search_ns_ = 0;
};

// `tidemark profile --detach`: undoes what an earlier run left in a process, say because it was
// killed.
Status detach_from(pid_t pid);

// What to do where a process could not be attached to.
std::string attach_hint(const Error& error, pid_t pid);

// "attached to pid 4711 in 0.08 s: it stood still for 3.1 ms, 2.4 ms of it as a whole; 1,204 calls
// in 87 modules are traced".
std::string attach_text(pid_t pid, const inject::AttachFigures& figures, std::int64_t took_ns);

}  // namespace tidemark::collect
