// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "common/result.h"

namespace tidemark::live {

// Lines for a descriptor whose reader may stall (a full pipe, Ctrl-S, a pager), written by a thread
// of its own: nobody who submits ever waits. Open it after the SignalInbox. All calls come from one
// thread.
class LineWriter {
 public:
  // `fd` is not owned. What waits for the reader is bounded; a single text always finds room.
  static Result<LineWriter> open(int fd, std::size_t max_waiting_bytes = 1U << 20U);
  // Does not wait: what nobody has read by then is given up.
  ~LineWriter();
  LineWriter(LineWriter&&) noexcept = default;
  LineWriter& operator=(LineWriter&&) = delete;

  // Whole lines. Dropped and counted when too much waits already.
  void submit(std::string lines);
  // The same for the few that must not be dropped: messages, the summary.
  void submit_always(std::string lines);

  // Lines dropped since the last call.
  std::uint64_t take_dropped();

  // There are no more lines to come.
  void close();
  // Readable once the thread has ended: after close() when all is written, or when it has failed.
  int ended_fd() const;
  // Why it failed. EPIPE: nobody reads any more.
  std::optional<Error> error() const;

 private:
  struct State;
  explicit LineWriter(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;  // shared with the thread, which may hang in a write when we go
  std::thread thread_;
};

}  // namespace tidemark::live
