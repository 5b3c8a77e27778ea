// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/records.h"
#include "common/result.h"

// The status file of `tidemark-harness serve-jobs`, see docs/job-server.md.
namespace tidemark::dashboard {

struct ServedJob {
  std::string id;
  std::string arguments;  // joined by blanks, raw bytes
  std::string state;      // "queued", "running", "done", "failed", "cancelled"
  std::optional<std::int64_t> step;
  std::optional<std::uint64_t> before_bytes;
  std::optional<std::uint64_t> peak_bytes;
  std::optional<std::uint64_t> after_bytes;
};

// Where this process keeps its status, if it is a job server that keeps one: a path that we can
// open.
std::optional<std::string> job_status_path(const ProcessRecord& process);

// kMalformed when it is no status file.
Result<std::vector<ServedJob>> parse_job_status(std::string_view text);

// Reads a status file when it has changed.
class JobWatch {
 public:
  void add_process(const ProcessRecord& process);
  // nullopt: nothing new.
  std::optional<std::vector<ServedJob>> poll();

 private:
  std::string path_;
  std::string last_;  // what it said
};

}  // namespace tidemark::dashboard
