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

// A pipe from a job, read line by line. Lines of more than 64 KiB are split.
class LinePipe {
 public:
  static Result<LinePipe> open();

  int read_fd() const { return read_end_.get(); }    // -1 after its end
  int write_fd() const { return write_end_.get(); }  // until close_write_end()
  void close_write_end() { write_end_.reset(); }

  // Passes on the lines that are there, without waiting; false at the end of the pipe.
  bool read_lines(const std::function<void(std::string_view)>& take_line);

 private:
  Fd read_end_;
  Fd write_end_;
  std::string unfinished_;
};

// Descriptors of the server that the job inherits.
struct JobDescriptors {
  int stdout_fd = -1;
  int stderr_fd = -1;
  int progress_fd = -1;  // keeps its number in the job
};

// The process of a job: leader of its own process group, killed by the kernel when the thread that
// started it ends. The destructor kills the whole group. Processes that have left the group become
// our children when the job ends and are waited for, so the server must have no other children.
class JobProcess {
 public:
  // Returns once the program was executed, or the reason why it was not.
  static Result<JobProcess> start(const std::vector<std::string>& argv,
                                  const JobDescriptors& descriptors);
  JobProcess(JobProcess&& other) noexcept;
  JobProcess& operator=(JobProcess&&) = delete;
  ~JobProcess();

  pid_t pid() const { return pid_; }
  // Readable once the process has ended; -1 where the kernel has no pidfd_open.
  int end_fd() const { return end_.get(); }
  void signal(int number) const;
  void kill_group() const;
  // Its wait status if it has ended; its group is then killed and reaped as well.
  std::optional<int> reap_if_ended();

 private:
  explicit JobProcess(pid_t pid);

  pid_t pid_ = -1;  // -1 once it is reaped
  Fd end_;
};

}  // namespace tidemark::harness
