// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/jobs/job_server.h"

#include <unistd.h>

#include <string>
#include <utility>

#include <fmt/format.h>

#include "common/atomic_file.h"

namespace tidemark::harness {
namespace {

// There may be thousands of steps a second.
constexpr std::int64_t kStatusEveryNs = 100'000'000;

bool is_due(const std::optional<JobIncident>& incident, const JobRecord& job) {
  return incident && incident->job_id == job.spec.id && job.step &&
         *job.step >= incident->after_step;
}

}  // namespace

// The job that runs: writes what it reports into its record.
class JobServer::CurrentJob final : public JobEvents {
 public:
  CurrentJob(JobServer& server, JobRecord& job, const std::atomic<bool>& stop)
      : server_(server), job_(job), stop_(stop) {}

  void on_process(pid_t pid) override {
    job_.pid = pid;
    pid_ = pid;
    server_.write_status();
  }
  void on_message() override {
    const std::int64_t now_ns = server_.clock_.monotonic_ns();
    if (!job_.times.first_message_ns) {
      job_.times.first_message_ns = now_ns;
    }
    job_.times.last_message_ns = now_ns;
  }
  void on_step(std::int64_t step, std::optional<double> loss) override {
    const std::int64_t now_ns = server_.clock_.monotonic_ns();
    if (!job_.times.first_step_ns) {
      job_.times.first_step_ns = now_ns;
    }
    job_.times.last_step_ns = now_ns;
    ++job_.times.steps_seen;
    job_.step = step;
    job_.loss = loss;
    if (!server_.status_written_ns_ || now_ns - *server_.status_written_ns_ >= kStatusEveryNs) {
      server_.write_status();
    }
  }
  void on_phase(std::string_view name) override {
    job_.phase = std::string(name);
    server_.write_status();  // there are no steps during a phase
  }
  void on_output(std::string_view line) override { server_.log_.on_job_output(job_, line); }
  bool cancel_requested() override { return stop_ || is_due(server_.options_.cancel, job_); }
  bool crash_requested() override {
    return !crashed_ && (crashed_ = is_due(server_.options_.crash, job_));
  }

  // Of server and job together; called on another thread.
  std::optional<std::uint64_t> footprint_bytes() const {
    const std::string& root = server_.options_.proc_root;
    const pid_t self = ::getpid();
    const pid_t pid = pid_;
    if (pid == 0 || pid == self) {
      return tree_footprint_bytes(root, self);
    }
    const auto own = own_footprint_bytes(root, self);
    const auto of_job = tree_footprint_bytes(root, pid);
    return own && of_job ? std::optional(*own + *of_job) : std::nullopt;
  }

 private:
  JobServer& server_;
  JobRecord& job_;
  const std::atomic<bool>& stop_;
  std::atomic<pid_t> pid_ = 0;
  bool crashed_ = false;
};

JobServer::JobServer(JobServerOptions options, JobRunner& runner, const Clock& clock,
                     JobServerLog& log)
    : options_(std::move(options)), runner_(runner), clock_(clock), log_(log) {
  status_.server_pid = ::getpid();
  status_.isolation = options_.isolation;
  for (const JobSpec& job : options_.jobs) {
    status_.jobs.emplace_back().spec = job;
  }
}

const ServerStatus& JobServer::run(const std::atomic<bool>& stop) {
  write_status();
  for (JobRecord& job : status_.jobs) {
    if (stop) {
      job.state = JobState::kCancelled;
    } else {
      run_job(job, stop);
    }
  }
  status_.state = stop ? ServerState::kStopped : ServerState::kDone;
  write_status();
  return status_;
}

void JobServer::run_job(JobRecord& job, const std::atomic<bool>& stop) {
  CurrentJob current(*this, job, stop);
  job.state = JobState::kRunning;
  job.memory.before_bytes = current.footprint_bytes();
  log_.on_job_start(job);
  write_status();
  PeakMeter peak([&current] { return current.footprint_bytes(); });
  job.times.submitted_ns = clock_.monotonic_ns();
  job.outcome = runner_.run(job.spec, current);
  job.times.ended_ns = clock_.monotonic_ns();
  job.memory.peak_bytes = peak.finish();
  job.memory.after_bytes = tree_footprint_bytes(options_.proc_root, ::getpid());
  job.state = job.outcome.state;
  log_.on_job_end(job);
  log_missed_incidents(job);
  write_status();
}

void JobServer::log_missed_incidents(const JobRecord& job) {
  for (const auto& [incident, what] :
       {std::pair(options_.cancel, "cancelled"), std::pair(options_.crash, "crashed")}) {
    if (job.state == JobState::kDone && incident && incident->job_id == job.spec.id) {
      log_.on_problem(fmt::format(
          "job {} was not {} after step {}: it had finished (last step: {})", job.spec.id, what,
          incident->after_step, job.step ? std::to_string(*job.step) : "none"));
    }
  }
}

void JobServer::write_status() {
  status_written_ns_ = clock_.monotonic_ns();
  status_.updated_wall_ns = clock_.wall_ns();
  if (options_.status_path.empty()) {
    return;
  }
  const Status written = write_file_atomically(options_.status_path, status_json(status_));
  if (!written && ++status_.failed_updates == 1) {
    log_.on_problem(written.error().what + "; the jobs go on without it");
  }
}

}  // namespace tidemark::harness
