// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "profiler/collect/preload.h"
#include "profiler/inject/attach.h"
#include "profiler/reader/trace_directory.h"

namespace tidemark::collect {

// The tracer in processes that ran already. What it did to them is undone when this goes, as far as
// they live. Not thread-safe.
class AttachedProcesses {
 public:
  // Of the first process: in its view of the file system. Where it was attached to before, from
  // elsewhere, that is used. An error says why it cannot be.
  static Result<AttachedProcesses> attach(pid_t pid, const TraceOptions& trace,
                                          std::int64_t timeout_ns);
  ~AttachedProcesses();
  AttachedProcesses(AttachedProcesses&&) noexcept = default;
  AttachedProcesses& operator=(AttachedProcesses&&) = delete;

  // Of a process that was attached to before, and has its trace file in a folder that stays. Errc::
  // kNotFound: the tracer was preloaded, and needs nothing.
  static Result<AttachedProcesses> attach_again(pid_t pid, std::int64_t timeout_ns);
  // One more process, whose trace file goes into the same folder. Not after attach_again().
  Status add(pid_t pid);
  // Where the trace files are, and whose they are; nullptr after attach_again().
  reader::TraceDirectory* directory() { return directory_ ? &*directory_ : nullptr; }
  // Whether the tracer was there and rests: it has to be woken.
  bool was_there() const { return was_there_; }
  // Of the process that was attached to last.
  const inject::AttachFigures& figures() const { return figures_; }
  // Whether the tracer is in a process: it was attached to, or forked from one that was.
  bool is_traced(pid_t pid) const;

  // Now and then: lets libraries that were loaded since call the tracer too. What went wrong, in
  // words.
  std::vector<std::string> hook_new_modules();
  // Undoes it, also in processes that were forked from them: `traced` are all that have a trace
  // file. What went wrong, in words.
  std::vector<std::string> detach(const std::vector<pid_t>& traced);

 private:
  explicit AttachedProcesses(std::int64_t timeout_ns) : timeout_ns_(timeout_ns) {}

  std::optional<reader::TraceDirectory> directory_;
  TraceOptions trace_;
  std::int64_t timeout_ns_;
  std::map<pid_t, inject::Attachment> attached_;
  inject::AttachFigures figures_;
  bool was_there_ = false;
  std::int64_t next_search_ns_ = 0;
};

// `tidemark profile --detach`: undoes what an earlier run left in a process, say because it was
// killed.
Status detach_from(pid_t pid);

// "attached to pid 4711 in 0.08 s: it stood still for 3.1 ms, 2.4 ms of it as a whole; 1,204 calls
// in 87 modules are traced".
std::string attach_text(pid_t pid, const inject::AttachFigures& figures, std::int64_t took_ns);

}  // namespace tidemark::collect
