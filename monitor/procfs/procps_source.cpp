// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/process_source.h"

#include <libproc2/pids.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

namespace tidemark::monitor {
namespace {

// What we ask libproc2 for, and below it the column of each. libproc2 wants it mutable.
// NOLINTNEXTLINE(readability-identifier-naming)
std::array<pids_item, 9> kItems{PIDS_ID_PID,   PIDS_ID_PPID,    PIDS_ID_PGRP,
                                PIDS_ID_EUID,  PIDS_STATE,      PIDS_NLWP,
                                PIDS_TICS_ALL, PIDS_TICS_BEGAN, PIDS_CMD};
enum Column { kPid, kPpid, kGroup, kUid, kState, kThreads, kCpu, kStart, kComm };

// procps-ng 4.0.3 dropped the fourth argument of PIDS_VAL.
#ifdef TIDEMARK_PIDS_VAL_HAS_THREE_ARGUMENTS
#define TIDEMARK_PIDS_VAL(column, type, stack, info) PIDS_VAL(column, type, stack)
#else
#define TIDEMARK_PIDS_VAL(column, type, stack, info) PIDS_VAL(column, type, stack, info)
#endif

class ProcpsSource final : public ProcessSource {
 public:
  explicit ProcpsSource(pids_info* info) : info_(info) {}
  ~ProcpsSource() override { procps_pids_unref(&info_); }
  ProcpsSource(const ProcpsSource&) = delete;
  ProcpsSource& operator=(const ProcpsSource&) = delete;

  Result<std::vector<ProcessEntry>> snapshot() override;

 private:
  pids_info* info_;
};

Result<std::vector<ProcessEntry>> ProcpsSource::snapshot() {
  pids_fetch* const fetched = procps_pids_reap(info_, PIDS_FETCH_TASKS_ONLY);
  if (fetched == nullptr) {
    return system_error("cannot read the process table in /proc", errno);
  }
  std::vector<ProcessEntry> entries;
  entries.reserve(static_cast<std::size_t>(fetched->counts->total));
  for (int i = 0; i < fetched->counts->total; ++i) {
    pids_stack* const row = fetched->stacks[i];
    ProcessEntry entry;
    entry.key.pid = TIDEMARK_PIDS_VAL(kPid, s_int, row, info_);
    entry.key.start_ticks = TIDEMARK_PIDS_VAL(kStart, ull_int, row, info_);
    entry.ppid = TIDEMARK_PIDS_VAL(kPpid, s_int, row, info_);
    entry.process_group = TIDEMARK_PIDS_VAL(kGroup, s_int, row, info_);
    entry.uid = TIDEMARK_PIDS_VAL(kUid, u_int, row, info_);
    entry.state = TIDEMARK_PIDS_VAL(kState, s_ch, row, info_);
    entry.threads = static_cast<std::uint32_t>(TIDEMARK_PIDS_VAL(kThreads, s_int, row, info_));
    entry.cpu_ticks = TIDEMARK_PIDS_VAL(kCpu, ull_int, row, info_);
    if (const char* comm = TIDEMARK_PIDS_VAL(kComm, str, row, info_); comm != nullptr) {
      entry.comm = comm;
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

Result<std::unique_ptr<ProcessSource>> make_procps_source() {
  pids_info* info = nullptr;
  const int result = procps_pids_new(&info, kItems.data(), static_cast<int>(kItems.size()));
  if (result < 0) {
    return system_error("libproc2 cannot read /proc (is it mounted?)", -result);
  }
  return std::unique_ptr<ProcessSource>(std::make_unique<ProcpsSource>(info));
}

}  // namespace tidemark::monitor
