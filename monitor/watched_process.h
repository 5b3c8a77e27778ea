// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/records.h"
#include "common/result.h"
#include "monitor/footprint.h"
#include "monitor/procfs/process_handle.h"
#include "monitor/procfs/process_source.h"
#include "monitor/sampler_plans.h"

namespace tidemark::monitor {

enum class ImageChange {
  kNone,
  kTitle,     // wrote over its own argv (setproctitle): the same program
  kExec,      // a new program in the same process
  kUnderWay,  // an exec that the kernel has not finished: the program is new, no arguments yet
};

// One member of the tree: its open files and what was last read from them.
struct WatchedProcess {
  WatchedProcess(ProcessHandle opened, const ProcessEntry& entry, double started_s);

  // `boot_ns`: the time since boot, as Clock tells it.
  void set_age(std::int64_t boot_ns);

  // argv, exe, rank, job: what only changes by exec or setproctitle.
  void read_identity(bool redact);
  ImageChange image_change() const;
  // Forked from `parent`, and no exec since: the same program with the same arguments.
  bool shares_image_with(const WatchedProcess& parent) const;
  // Whether `status` is new. An error when the process has gone or its files cannot be read.
  Result<bool> read_status(StatusRead when);
  Result<PssFields> pss_without_tracer();
  CheapMemory cheap() const;
  ProcessSample sample(std::int64_t now_ns) const;

  ProcessHandle handle;
  ProcessRecord record;
  std::vector<std::string> argv;
  std::string exe;  // without the kernel's word for a file that was removed
  std::optional<std::uint64_t> stack_start;  // differs after every exec; nullopt: may not be read
  StatusFields status;
  std::optional<StatmFields> statm;  // read just before `status`; nullopt: not known
  // Of our own allocation tracer, which is in it: part of what the kernel calls its shared memory,
  // and of nothing that we say about it.
  std::uint64_t tracer_bytes = 0;
  std::uint64_t cpu_ticks = 0;
  std::optional<int> rank;
  std::string job;  // of which it is a rank: job_from_environment()
  std::optional<PssFields> pss;
  std::int64_t pss_taken_ns = 0;
  std::int64_t memory_read_ns = 0;  // when what it holds was read
  std::int64_t image_checked_ns = 0;
  std::optional<std::int64_t> exec_seen_ns;  // waits for its arguments since then
  bool has_memory = true;  // false: a zombie or exiting, its pages are gone already
  bool pss_refused = false;
  bool split_unknown = false;  // an old kernel: only the sum is known
  std::optional<std::int64_t> retry_share_ns;
};

}  // namespace tidemark::monitor
