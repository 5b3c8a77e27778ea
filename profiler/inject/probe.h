// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "common/fd.h"
#include "common/result.h"
#include "profiler/inject/library_loader.h"
#include "profiler/inject/remote_memory.h"
#include "profiler/inject/remote_modules.h"
#include "profiler/wire/probe_layout.h"

namespace tidemark::inject {

struct ProbeOptions {
  std::string library;  // the probe
  std::int64_t timeout_ns = 0;
  std::function<bool()> is_cancelled = [] { return false; };
};

// The addresses of those functions of Python that the probe calls. The error: this process has no
// such interpreter (kNotFound), or lacks one of them.
Result<wire::ProbePython> find_probe_python(const AddressSpace& space, const RemoteMemory& memory);

// The probe in a process that runs: a thread there that does one thing after the other for us (see
// profiler/probe/probe.h). It ends when this goes, or some seconds after we were killed. One at a
// time in each process, whoever asks. Not thread-safe.
class Probe {
 public:
  // The caller has asked check_target().
  static Result<Probe> start(pid_t pid, const ProbeOptions& options);
  ~Probe();
  Probe(Probe&&) noexcept;
  Probe& operator=(Probe&&) = delete;

  // How an order ended for us.
  enum class Ending {
    kAnswered,      // the outcome has what came of it: also that it was withdrawn
    kStillRunning,  // it was begun, and is not given up; the outcome is empty
  };
  struct Answer {
    Ending ending = Ending::kAnswered;
    wire::ProbeOutcome outcome = {};
  };
  // Waits until it is done. One that has not begun after `timeout_ns`, or as it is cancelled, is
  // withdrawn and never done; one that has begun is waited for as long again. The error: the
  // process has exited or runs another program, or an earlier order still waits or runs.
  Result<Answer> run(const wire::ProbeOrder& order, std::int64_t timeout_ns);
  // Lets time pass. False: cancelled, or the process is gone. To be called for whatever takes
  // longer than a second: without it the probe takes us for gone.
  bool wait(std::int64_t ns);

  const LoadFigures& figures() const { return figures_; }

 private:
  Probe(pid_t pid, RemoteMemory memory, ProbeOptions options)
      : pid_(pid), memory_(std::move(memory)), options_(std::move(options)) {}
  Status start_thread();
  template <typename T>
  Result<T> load(std::size_t offset) const;
  template <typename T>
  Status store(std::size_t offset, T value) const;
  Status beat();
  Result<Answer> wait_for_answer(std::uint8_t number, std::int64_t timeout_ns);
  void end();

  pid_t pid_;
  RemoteMemory memory_;
  ProbeOptions options_;
  Fd lock_;
  std::uint64_t control_ = 0;  // the address of wire::ProbeControl; 0: moved from, or none
  std::uint32_t beat_ = 0;
  LoadFigures figures_;
};

}  // namespace tidemark::inject
