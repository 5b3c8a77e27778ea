// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/jobs/inprocess_runner.h"

#include <signal.h>
#include <unistd.h>

#include <exception>

#include <fmt/format.h>

#include "trainer_harness/command_line.h"

namespace tidemark::harness {
namespace {

class ObserverAdapter final : public TrainerObserver {
 public:
  explicit ObserverAdapter(JobEvents& events) : events_(events) {}

  void on_step(std::uint64_t step, double loss) override {
    events_.on_message();
    events_.on_step(static_cast<std::int64_t>(step), loss);
    if (events_.crash_requested()) {
      ::raise(SIGSEGV);
    }
  }
  void on_phase(std::string_view name, bool begins) override {
    events_.on_message();
    events_.on_phase(begins ? name : std::string_view());
  }
  bool stop_requested() override { return events_.cancel_requested(); }

 private:
  JobEvents& events_;
};

JobOutcome failed(std::string why) {
  return {JobState::kFailed, std::move(why), std::nullopt, std::nullopt};
}

}  // namespace

JobOutcome InprocessRunner::run(const JobSpec& job, JobEvents& events) {
  events.on_process(::getpid());
  events.on_message();
  const auto options = parse_trainer_options(job.arguments);
  if (!options) {
    return failed(options.error().what);
  }
  ObserverAdapter observer(events);
  try {
    const auto outcome = train_(*options, observer);
    events.on_message();
    if (!outcome) {
      return failed(outcome.error().what);
    }
    const JobState state = outcome->stopped ? JobState::kCancelled : JobState::kDone;
    return {state, {}, std::nullopt, std::nullopt};
  } catch (const std::exception& error) {
    // Usually out of memory. The job fails, the server goes on.
    return failed(fmt::format("the job threw {}", error.what()));
  }
}

}  // namespace tidemark::harness
