// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

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

}  // namespace tidemark::harness
