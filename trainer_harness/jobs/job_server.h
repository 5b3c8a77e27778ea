// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "trainer_harness/jobs/job.h"
#include "trainer_harness/jobs/job_memory.h"
#include "trainer_harness/jobs/job_report.h"

namespace tidemark::harness {

// Cancel or crash a job after this step.
struct JobIncident {
  int job_id = 0;
  std::int64_t after_step = 0;
};

struct JobServerOptions {
  Isolation isolation = Isolation::kSubprocess;
  std::vector<JobSpec> jobs;
  std::string status_path;  // empty: no status file
  std::optional<JobIncident> cancel;
  std::optional<JobIncident> crash;
  std::string proc_root = "/proc";
};

// Receives what the server reports to its user.
class JobServerLog {
 public:
  virtual ~JobServerLog() = default;
  virtual void on_job_start(const JobRecord& job) = 0;
  virtual void on_job_end(const JobRecord& job) = 0;
  virtual void on_job_output(const JobRecord& job, std::string_view line) = 0;
  virtual void on_problem(std::string_view what) = 0;
};

// Runs jobs one after the other, also after one has failed, and keeps their status and ledger.
class JobServer {
 public:
  JobServer(JobServerOptions options, JobRunner& runner, const Clock& clock, JobServerLog& log);

  // `stop` may be set at any time, also by a signal handler: the running job is cancelled, the
  // others are not started.
  const ServerStatus& run(const std::atomic<bool>& stop);

 private:
  class CurrentJob;

  void run_job(JobRecord& job, const std::atomic<bool>& stop);
  void log_missed_incidents(const JobRecord& job);
  void write_status();

  JobServerOptions options_;
  JobRunner& runner_;
  const Clock& clock_;
  JobServerLog& log_;
  ServerStatus status_;
  std::optional<std::int64_t> status_written_ns_;
};

}  // namespace tidemark::harness
