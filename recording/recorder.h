// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "common/recording_sink.h"
#include "recording/run_writer.h"
#include "recording/waiting_facts.h"

namespace tidemark::recording {

struct RecorderOptions {
  // The queue between sampler and disk ends at whichever comes first.
  std::size_t max_ticks = 300;
  std::size_t max_bytes = 8U << 20U;
};

struct RecorderStats {
  std::uint64_t ticks_written = 0;
  std::uint64_t ticks_dropped = 0;
  double max_write_late_s = 0.0;  // longest way of a tick from add() into the file
};

// A RunWriter on a thread of its own, so that a slow disk never holds up the sampler. add() never
// waits: when the queue is full the tick is dropped and counted, and the file gets a loss
// "ticks_dropped" when the disk moves again (see WaitingFacts for what is kept of it).
//
// begin(), add(), process_ended() and end() come from one thread; the rest from any.
class Recorder final : public RecordingSink {
 public:
  explicit Recorder(std::unique_ptr<RunWriter> writer, RecorderOptions options = {});
  // Without end(): what is queued is still written, the run counts as not ended.
  ~Recorder() override;

  // Runs in the caller, so that a file that cannot be written is known before anything starts.
  Status begin(const RunInfo& info) override;
  // Always ok: the watched job and its monitor go on without the file; see take_error().
  Status add(const Tick& tick) override;
  Status process_ended(const ProcessRecord& process) override;
  // Waits until the queue is written. The error that stopped the writing, whoever had it before.
  Status end(double t_s) override;

  // The error that stopped the writing, given out once; nullopt as long as all is well.
  std::optional<Error> take_error();
  RecorderStats stats() const;
  // After end(): see RunWriter.
  bool is_one_file() const { return writer_->is_one_file(); }

 private:
  struct Item {
    std::vector<ProcessRecord> ended;  // before the tick
    Tick tick;
    std::size_t bytes = 0;
    std::int64_t added_ns = 0;
  };

  bool has_room_for(std::size_t bytes) const;
  void push(Tick tick);
  void finish(std::optional<double> end_s);
  void run();
  Status write(const Item& item);
  Status write_ended(const std::vector<ProcessRecord>& ended);
  void fail(const Error& error, std::uint64_t lost_ticks);

  const std::unique_ptr<RunWriter> writer_;  // between begin() and end(): the thread's
  const RecorderOptions options_;
  const SystemClock clock_;
  WaitingFacts waiting_;  // the caller's
  std::thread thread_;

  mutable std::mutex mutex_;  // guards all below; never held while the disk is used
  std::condition_variable wake_;
  std::deque<Item> queue_;
  std::size_t queued_bytes_ = 0;
  bool is_stopping_ = false;
  std::optional<Error> failure_;
  bool failure_was_taken_ = false;
  RecorderStats stats_;
};

}  // namespace tidemark::recording
