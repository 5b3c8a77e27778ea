// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/fd.h"
#include "common/result.h"

namespace tidemark::harness {

// A pipe from a job: its write end goes to the job, what comes out is handed on line by line.
// Lines that are too long to be lines are cut.
class LinePipe {
 public:
  static Result<LinePipe> open();

  int read_fd() const { return read_end_.get(); }    // -1 after its end
  int write_fd() const { return write_end_.get(); }  // until close_write_end()
  void close_write_end() { write_end_.reset(); }

  // Hands on what is there without waiting; false once it has ended.
  bool read_lines(const std::function<void(std::string_view)>& take_line);

 private:
  Fd read_end_;
  Fd write_end_;
  std::string unfinished_;
};

// Descriptors of ours that the job gets.
struct JobDescriptors {
  int stdout_fd = -1;
  int stderr_fd = -1;
  int progress_fd = -1;  // keeps its number in the job
};

// The process of a job: leader of its own process group, killed by the kernel when the thread that
// started it ends. Nothing of the group survives this object. What leaves the group becomes our
// child when the job ends, and is waited for: whoever starts a job has no other children.
class JobProcess {
 public:
  // Returns when the program runs, or with the reason why it does not.
  static Result<JobProcess> start(const std::vector<std::string>& argv,
                                  const JobDescriptors& descriptors);
  JobProcess(JobProcess&& other) noexcept;
  JobProcess& operator=(JobProcess&&) = delete;
  ~JobProcess();

  pid_t pid() const { return pid_; }
  // Readable once the process has ended; -1 where the kernel has no such thing.
  int end_fd() const { return end_.get(); }
  void signal(int number) const;
  void kill_group() const;
  // Its wait status if it has ended; then its whole group has as well.
  std::optional<int> reap_if_ended();

 private:
  explicit JobProcess(pid_t pid);

  pid_t pid_ = -1;  // -1 once it is reaped
  Fd end_;
};

}  // namespace tidemark::harness
