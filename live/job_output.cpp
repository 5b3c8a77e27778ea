// SPDX-License-Identifier: Apache-2.0
#include "live/job_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"

namespace tidemark::live {

Result<JobOutput> JobOutput::open(const WatchOptions& options, const Clock& clock,
                                  std::int64_t start_ns) {
  JobOutput output(clock, start_ns);
  output.stdout_is_ours_ = options.json;
  if (!options.command_output.empty()) {
    TIDEMARK_TRY_ASSIGN(output.file_, open_file(options.command_output, O_WRONLY | O_APPEND));
    TIDEMARK_TRY_ASSIGN(output.no_input_, open_file("/dev/null", O_RDONLY));
  }
  if (!options.step_regex.empty()) {
    TIDEMARK_TRY(output.open_step_source(options));
  }
  return output;
}

Status JobOutput::open_step_source(const WatchOptions& options) {
  auto pattern = monitor::StepPattern::compile(options.step_regex);
  if (!pattern) {
    return Error{pattern.error().code, "--step-regex: " + pattern.error().what};
  }
  if (!options.log_file.empty()) {
    TIDEMARK_TRY_ASSIGN(auto log,
                        monitor::LogFollower::open(options.log_file, *std::move(pattern)));
    log_.emplace(std::move(log));
    return ok();
  }
  const int stderr_sink = file_ ? file_.get() : STDERR_FILENO;
  TIDEMARK_TRY_ASSIGN(
      auto relay,
      OutputRelay::open({.pattern = *std::move(pattern),
                         .stdout_sink = stdout_is_ours_ || file_ ? stderr_sink : STDOUT_FILENO,
                         .stderr_sink = stderr_sink,
                         .run_start_ns = start_ns_},
                        *clock_));
  relay_.emplace(std::move(relay));
  return ok();
}

void JobOutput::redirect(LaunchOptions& launch) const {
  if (file_) {
    launch.stdin_fd = no_input_.get();
    launch.stdout_fd = file_.get();
    launch.stderr_fd = file_.get();
  }
  if (relay_) {
    launch.stdout_fd = relay_->child_stdout();
    launch.stderr_fd = relay_->child_stderr();
  } else if (stdout_is_ours_) {
    launch.stdout_fd = STDERR_FILENO;
  }
}

void JobOutput::on_command_start() {
  no_input_.reset();
  if (relay_) {
    relay_->begin();
  }
}

void JobOutput::on_command_exit(std::optional<std::int64_t> wait_ns) {
  if (wait_ns) {
    end_ns_ = clock_->monotonic_ns() + *wait_ns;
  }
}

void JobOutput::copy_window_size() {
  if (relay_) {
    relay_->copy_window_size();
  }
}

std::vector<MarkerRecord> JobOutput::take_steps() {
  std::vector<MarkerRecord> steps = std::exchange(late_steps_, {});
  if (relay_) {
    relay_->take(steps);
  }
  if (log_) {
    log_->poll(to_seconds(clock_->monotonic_ns() - start_ns_), steps);
  }
  has_found_steps_ = has_found_steps_ || !steps.empty();
  return steps;
}

monitor::StepLosses JobOutput::take_lost() {
  monitor::StepLosses lost = std::exchange(late_lost_, {});
  lost += relay_ ? relay_->take_lost() : monitor::StepLosses{};
  lost += log_ ? log_->take_lost() : monitor::StepLosses{};
  return lost;
}

bool JobOutput::is_open() const {
  return relay_ && !relay_->at_end() && clock_->monotonic_ns() < end_ns_;
}

Status JobOutput::close() {
  if (!relay_) {
    return ok();
  }
  relay_->leave();
  const auto error = relay_->take_error();
  relay_->take(late_steps_);
  late_lost_ += relay_->take_lost();
  relay_.reset();
  return error ? Status(*error) : ok();
}

Result<std::string> make_command_output(const std::string& run_file) {
  constexpr int kAttempts = 1000;
  std::string stem = run_file;
  if (stem.empty()) {
    // Nothing of ours changes the environment. NOLINTNEXTLINE(concurrency-mt-unsafe)
    const char* folder = std::getenv("TMPDIR");
    stem = fmt::format("{}/tidemark-output-{}",
                       folder == nullptr || *folder == '\0' ? "/tmp" : folder, ::getpid());
  }
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string path = attempt == 0 ? stem + ".log" : fmt::format("{}.{}.log", stem, attempt);
    const auto file = open_file(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (file) {
      return path;
    }
    if (file.error().sys_errno != EEXIST) {
      return file.error();
    }
  }
  return Error{Errc::kUsage, "there are too many files like " + stem + ".log"};
}

}  // namespace tidemark::live
