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
#include "common/records.h"
#include "recording/run_writer.h"

namespace tidemark::recording {

// What waits for the next tick that finds room in the queue: processes that have ended, and the
// lasting facts (new processes, markers, events, losses, what allocates) of ticks that were
// dropped. Samples of processes are taken again, facts happen once, and a site is sampled only when
// it has changed. Bounded: what goes beyond is counted as the loss "facts_dropped".
// Not thread-safe.
class PendingFacts {
 public:
  explicit PendingFacts(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  void add_ended(const ProcessRecord& process);
  void add_dropped(Tick tick);

  // Puts the facts in front of those of `tick`, and adds the losses. Empties this.
  void move_into(Tick& tick);
  // The last dropped tick, whole and with all facts: for the end of a run, when none follows.
  std::optional<Tick> take_last_dropped();
  std::vector<ProcessRecord> take_ended();

 private:
  bool has_room_for(std::size_t bytes);

  std::size_t max_bytes_;
  std::size_t bytes_ = 0;
  std::optional<Tick> dropped_;  // the last dropped tick, with the facts of all before it
  std::uint64_t ticks_ = 0;
  std::uint64_t facts_lost_ = 0;
  std::vector<ProcessRecord> ended_;
};

// What a tick takes in memory.
std::size_t approximate_bytes(const Tick& tick);

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
// "ticks_dropped" when the disk moves again (see PendingFacts for what is kept of it).
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
  Status add(const Tick& tick) override { return add(Tick(tick)); }
  // Without a copy.
  Status add(Tick&& tick);
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
  PendingFacts pending_;  // the caller's
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
