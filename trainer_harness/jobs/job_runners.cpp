// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/jobs/job_runners.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <exception>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/text.h"
#include "trainer_harness/command_line.h"
#include "trainer_harness/jobs/job_process.h"
#include "trainer_harness/jobs/progress_line.h"

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

constexpr int kPollMs = 50;

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", number);
}

// We hold the write ends until the job has inherited them.
struct JobPipes {
  LinePipe progress;
  LinePipe out;
  LinePipe errors;
};

Result<JobPipes> open_pipes() {
  auto progress = LinePipe::open();
  auto out = LinePipe::open();
  auto errors = LinePipe::open();
  for (const auto* pipe : {&progress, &out, &errors}) {
    if (!*pipe) {
      return pipe->error();
    }
  }
  return JobPipes{std::move(*progress), std::move(*out), std::move(*errors)};
}

// One job, from start to end.
class RunningJob {
 public:
  RunningJob(JobProcess process, JobPipes pipes, JobEvents& events, std::int64_t grace_ns)
      : process_(std::move(process)),
        pipes_(std::move(pipes)),
        events_(events),
        grace_ns_(grace_ns) {
    pipes_.progress.close_write_end();
    pipes_.out.close_write_end();
    pipes_.errors.close_write_end();
  }

  JobOutcome run() {
    events_.on_process(process_.pid());
    std::optional<int> status;
    while (!status) {
      wait_for_events();
      read_pipes();
      handle_requests();
      status = process_.reap_if_ended();
    }
    read_pipes();
    return outcome_of(*status);
  }

 private:
  void wait_for_events() const {
    std::array<pollfd, 4> events = {{{process_.end_fd(), POLLIN, 0},
                                     {pipes_.progress.read_fd(), POLLIN, 0},
                                     {pipes_.out.read_fd(), POLLIN, 0},
                                     {pipes_.errors.read_fd(), POLLIN, 0}}};
    ::poll(events.data(), events.size(), kPollMs);  // a signal to the server also ends the wait
  }

  void read_pipes() {
    pipes_.progress.read_lines([this](std::string_view line) { on_progress(line); });
    pipes_.out.read_lines([this](std::string_view line) { events_.on_output(line); });
    pipes_.errors.read_lines([this](std::string_view line) {
      if (!trim(line).empty() && !line.starts_with("hint: ")) {
        last_error_ = std::string(trim(line));
      }
      events_.on_output(line);
    });
  }

  void on_progress(std::string_view text) {
    const auto line = parse_progress_line(text);
    if (!line) {
      return;
    }
    events_.on_message();
    if (line->phase) {
      events_.on_phase(*line->phase);
    }
    if (line->step) {
      events_.on_step(*line->step, line->loss);
    }
    if (line->stopped) {
      stopped_ = line->stopped;
    }
  }

  void handle_requests() {
    if (events_.crash_requested()) {
      process_.signal(SIGSEGV);
    }
    const std::int64_t now_ns = SystemClock().monotonic_ns();
    if (!cancelled_ns_ && events_.cancel_requested()) {
      process_.signal(SIGTERM);
      cancelled_ns_ = now_ns;
    } else if (cancelled_ns_ && now_ns - *cancelled_ns_ >= grace_ns_ && !killed_) {
      process_.kill_group();
      killed_ = true;
    }
  }

  JobOutcome outcome_of(int status) const {
    JobOutcome outcome;
    if (WIFSIGNALED(status)) {
      const int number = WTERMSIG(status);
      outcome.signal = number;
      const bool ours = cancelled_ns_ && (number == SIGTERM || (number == SIGKILL && killed_));
      outcome.state = ours ? JobState::kCancelled : JobState::kFailed;
      if (!ours) {
        outcome.error = fmt::format("the job was killed by {}", signal_name(number));
      }
    } else {
      outcome.exit_code = WEXITSTATUS(status);
      if (*outcome.exit_code == 0) {
        // The job may have finished before it saw the request. If it did not say, it was cancelled.
        const bool was_stopped = cancelled_ns_ && stopped_.value_or(true);
        outcome.state = was_stopped ? JobState::kCancelled : JobState::kDone;
      } else {
        outcome.error = fmt::format("the job ended with exit code {}", *outcome.exit_code);
      }
    }
    if (!outcome.error.empty() && !last_error_.empty()) {
      outcome.error += ": " + last_error_;
    }
    return outcome;
  }

  JobProcess process_;
  JobPipes pipes_;
  JobEvents& events_;
  std::int64_t grace_ns_;
  std::optional<std::int64_t> cancelled_ns_;  // when it was asked to stop
  bool killed_ = false;
  std::optional<bool> stopped_;  // as the job reported at its end
  std::string last_error_;       // its last line on stderr that is not a hint
};

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

JobOutcome SubprocessRunner::run(const JobSpec& job, JobEvents& events) {
  auto pipes = open_pipes();
  if (!pipes) {
    return {JobState::kFailed, pipes.error().what, std::nullopt, std::nullopt};
  }
  const JobDescriptors descriptors{pipes->out.write_fd(), pipes->errors.write_fd(),
                                   pipes->progress.write_fd()};
  std::vector<std::string> argv = options_.trainer;
  argv.insert(argv.end(), job.arguments.begin(), job.arguments.end());
  argv.insert(argv.end(), {"--progress-fd", std::to_string(descriptors.progress_fd)});
  auto process = JobProcess::start(argv, descriptors);
  if (!process) {
    return {JobState::kFailed, process.error().what, std::nullopt, std::nullopt};
  }
  return RunningJob(std::move(*process), std::move(*pipes), events, options_.grace_ns).run();
}

}  // namespace tidemark::harness
