// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/jobs/serve_jobs.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/io.h"
#include "common/text.h"
#include "trainer_harness/jobs/job_report.h"
#include "trainer_harness/jobs/job_runners.h"
#include "trainer_harness/jobs/job_server.h"

namespace tidemark::harness {
namespace {

constexpr int kExitFailed = 3;

// Set by a signal handler.
std::atomic<bool> g_stop = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void request_stop(int /*signal*/) { g_stop = true; }

void set_signals() {
  struct sigaction action {};
  action.sa_handler = request_stop;
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

// To the user. A closed stderr is no reason to stop.
void print_line(std::string_view text) {
  (void)write_all(STDERR_FILENO, fmt::format("tidemark-harness: {}\n", text));
}

class ServerLog final : public JobServerLog {
 public:
  explicit ServerLog(bool quiet) : quiet_(quiet) {}

  void on_job_start(const JobRecord& job) override {
    print_line(fmt::format("job {}: {}", job.spec.id,
                           escape_text(fmt::format("{}", fmt::join(job.spec.arguments, " ")))));
  }
  void on_job_end(const JobRecord& job) override { print_line(job_end_text(job)); }
  void on_job_output(const JobRecord& job, std::string_view line) override {
    if (!quiet_) {
      (void)write_all(STDERR_FILENO, fmt::format("[job {}] {}\n", job.spec.id, escape_text(line)));
    }
  }
  void on_problem(std::string_view what) override { print_line(escape_text(what)); }

 private:
  bool quiet_;
};

// A trainer in this process logs to stdout, which is reserved for the ledger. During the lifetime
// of this object stdout goes to stderr or, with `quiet`, to /dev/null.
class StdoutRedirect {
 public:
  explicit StdoutRedirect(bool quiet) : kept_(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)) {
    Fd target(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
    if (quiet) {
      if (auto nowhere = open_file("/dev/null", O_WRONLY)) {
        target = std::move(*nowhere);
      }
    }
    if (kept_ && target) {
      ::dup2(target.get(), STDOUT_FILENO);
    }
  }
  ~StdoutRedirect() {
    std::fflush(stdout);
    if (kept_) {
      ::dup2(kept_.get(), STDOUT_FILENO);
    }
  }
  StdoutRedirect(const StdoutRedirect&) = delete;
  StdoutRedirect& operator=(const StdoutRedirect&) = delete;

 private:
  Fd kept_;
};

ServerStatus serve(const ServeOptions& options, const TrainFunction& train,
                   const std::vector<std::string>& trainer_argv) {
  ServerLog log(options.quiet);
  const SystemClock clock;
  if (options.server.isolation == Isolation::kSubprocess) {
    SubprocessRunner runner({trainer_argv, options.grace_ns});
    return JobServer(options.server, runner, clock, log).run(g_stop);
  }
  const StdoutRedirect redirect(options.quiet);
  InprocessRunner runner(train);
  return JobServer(options.server, runner, clock, log).run(g_stop);
}

}  // namespace

int serve_jobs(const ServeOptions& options, const TrainFunction& train,
               const std::vector<std::string>& trainer_argv) {
  set_signals();
  const ServerStatus status = serve(options, train, trainer_argv);
  const Status written =
      write_all(STDOUT_FILENO, options.json ? status_json(status) : ledger_text(status));
  if (!written) {
    print_line("error: " + written.error().what);
    return kExitFailed;
  }
  const bool failed = std::any_of(status.jobs.begin(), status.jobs.end(),
                                  [](const auto& job) { return job.state == JobState::kFailed; });
  return failed ? kExitFailed : 0;
}

}  // namespace tidemark::harness
