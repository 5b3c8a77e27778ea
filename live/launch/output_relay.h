// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "common/records.h"
#include "common/result.h"
#include "monitor/markers/step_log.h"

namespace tidemark::live {

// Lets the output of a command pass through us, byte for byte, and finds the steps in it. A stream
// that ends at a terminal goes through a pseudo-terminal of the same size, so that progress bars
// and colours stay; any other through a pipe. If the command's stdout and stderr would end at the
// same place they share one channel, so that their order stays. Each channel has a thread: the
// command never waits for our sampling, and when the reader of our output is slow the command waits
// as it would without us. When that reader is gone, so is the command's: it gets SIGPIPE as it
// would without us. Any other failure to write (a full disk) is told by take_error(), and the
// command goes on. When we are killed, an OutputStandby goes on in our place.
//
// Order of use: open, start the command with child_stdout() and child_stderr(), begin, take now and
// then, and finish once the command has ended, or leave when there is no time to wait.
class OutputRelay {
 public:
  struct Options {
    monitor::StepFinder steps;
    int stdout_sink = 1;  // where the command's stdout ends; 2 for `--json`
    int stderr_sink = 2;
    std::int64_t run_start_ns = 0;
    // Processes that outlive the command can go on writing when we have left. When we are killed
    // they can in any case.
    bool hands_over = false;
  };
  // `clock` must outlive the relay; it is used from its threads.
  static Result<OutputRelay> open(const Options& options, const Clock& clock);
  ~OutputRelay();
  OutputRelay(OutputRelay&&) noexcept;
  OutputRelay& operator=(OutputRelay&&) = delete;

  // Descriptors for the command; close-on-exec, valid until begin().
  int child_stdout() const;
  int child_stderr() const;

  // The command has them now. Start the SignalInbox first: the threads must not take signals.
  void begin();

  // After SIGWINCH, before it is passed on to the command.
  void copy_window_size();

  // Appends the steps found since the last call.
  void take(std::vector<MarkerRecord>& out);
  // What was lost since the last call.
  monitor::StepLosses take_lost();

  // The first failure to write the command's output, given out once.
  std::optional<Error> take_error();

  // True when nobody has the command's output open any more, or nobody reads it, and all is
  // written. The descriptor becomes readable then.
  bool at_end() const;
  int ended_fd() const;

  // Passes on what is still in the channels, however slow its reader is, and stops: what processes
  // that outlive the command write is no longer ours. Steps can be taken as before.
  void finish();
  // The same, but does not wait for a reader that stalls: what it has not read is given up.
  void leave();

 private:
  struct State;
  explicit OutputRelay(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;
  std::vector<std::thread> threads_;
};

}  // namespace tidemark::live
