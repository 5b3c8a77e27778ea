// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "common/intervention_records.h"
#include "common/process_key.h"
#include "common/result.h"
#include "profiler/collect/interventions.h"

namespace tidemark::live {

struct InterventionOptions {
  collect::InterventionChoice choice;
  std::int64_t settle_ns = 2 * kNsPerSecond;    // from an intervention to the samples behind it
  std::int64_t timeout_ns = 20 * kNsPerSecond;  // for a process that does not come to it
};

// What happens to a process.
struct InterventionListener {
  std::function<void(const std::string& text)> on_note;  // what is done next, in words
  std::function<void(InterventionRecord record)> on_record;
  std::function<bool()> is_cancelled;
};

// All interventions in one process, one at a time: a control measurement, in which nothing is done,
// then the intervention, a pause, and samples of what there is now. Takes some seconds for each.
// `begun_ns`: by the monotonic clock, when the times of the records begin. The error: there is no
// such process any more, or nothing may be done in it; what was not done has a record that says so.
Status intervene_in_process(const ProcessKey& key, const InterventionOptions& options,
                            std::int64_t begun_ns, const InterventionListener& listener);

// The same for several processes, one after the other, on a thread of its own. All calls come from
// one thread.
class InterventionThread {
 public:
  explicit InterventionThread(const InterventionOptions& options) : options_(options) {}
  ~InterventionThread() { cancel(); }
  InterventionThread(const InterventionThread&) = delete;
  InterventionThread& operator=(const InterventionThread&) = delete;

  // Once. `t_s`: the time of the run now.
  void begin(std::vector<ProcessKey> targets, double t_s);
  // It has begun, and is not over.
  bool is_busy() const;

  struct Failure {
    ProcessKey key;
    Error error;
  };
  struct News {
    std::vector<InterventionRecord> records;
    std::vector<std::string> notes;
    std::vector<Failure> failures;
  };
  News take();
  // What has not begun is withdrawn, and the thread ends.
  void cancel();

 private:
  void run(const std::vector<ProcessKey>& targets, std::int64_t begun_ns);

  const InterventionOptions options_;
  std::atomic<bool> is_cancelled_ = false;
  std::thread thread_;

  mutable std::mutex mutex_;  // guards all below
  bool is_busy_ = false;
  News news_;
};

}  // namespace tidemark::live
