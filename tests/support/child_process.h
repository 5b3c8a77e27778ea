// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>

#include "common/fd.h"

namespace tidemark::tests {

// A forked child that runs a function. Killed and reaped at the end of the test.
class ChildProcess {
 public:
  // What the child's code uses to talk to the test.
  class Link {
   public:
    Link(int in, int out) : in_(in), out_(out) {}
    void signal_ready() const;  // makes wait_ready() return in the test
    void wait_for_order()
        const;  // returns after the next give_order(); exits when the test is gone

   private:
    int in_;
    int out_;
  };

  // The child exits with 0 when `code` returns. It must not use the test framework.
  explicit ChildProcess(const std::function<void(const Link&)>& code);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  bool wait_ready() const;  // false when it ended first
  void give_order() const;
  void kill();  // SIGKILL; it stays a zombie until wait()
  int wait();   // its wait status; reaps it
  void wait_until_zombie() const;

 private:
  pid_t pid_ = -1;
  Fd from_child_;
  Fd to_child_;
  std::optional<int> status_;
};

}  // namespace tidemark::tests
