// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/fd.h"
#include "common/process_key.h"
#include "common/records.h"
#include "common/result.h"
#include "monitor/markers/marker_ring.h"

namespace tidemark::monitor {

// Collects what the processes of a tree mark through api/tidemark.h and api/tidemark.py. Made for
// many processes: it lists each marker directory (one per /dev/shm and user) at most once per
// `scan_every_ns`, and costs one small pread per process that marks and poll. Not thread-safe.
class MarkerReader {
 public:
  struct Options {
    std::int64_t run_start_ns = 0;  // CLOCK_MONOTONIC at t = 0
    std::int64_t scan_every_ns = 250'000'000;
    std::int64_t locate_every_ns = 5'000'000'000;  // a process without a ring, at first
    std::function<Result<MarkerPlace>(const ProcessKey&)> locate = &locate_markers;
  };

  explicit MarkerReader(Options options);
  ~MarkerReader();
  MarkerReader(MarkerReader&&) noexcept;
  MarkerReader& operator=(MarkerReader&&) noexcept;

  // Appends what `processes` have marked since the last call, in the order of time. A process that
  // was there at the last call and is not now is read for the last time.
  // A ring that was in use before the run gives its state at the start instead of its history: the
  // last step, the last epoch, the phases that are open and what gauges show, with their times
  // (t_s < 0).
  void poll(std::span<const ProcessKey> processes, std::int64_t now_ns,
            std::vector<MarkerRecord>& out);

  // Between two polls: opens the rings that have come since. That of a process that ends before the
  // next poll would be gone by then. Costs nothing within `scan_every_ns` of the last time.
  void find_rings(std::int64_t now_ns);

  // The end of the run: reads everything for the last time and removes the files of processes that
  // have exited.
  void finish(std::int64_t now_ns, std::vector<MarkerRecord>& out);

  // Markers that were overwritten or damaged before we read them, since the last call.
  std::uint64_t take_lost();
  // Marker files of watched processes that we could not use (later version, damaged).
  std::uint64_t unreadable_files() const { return unreadable_files_; }

 private:
  struct Directory;
  struct Process;

  void scan(std::int64_t now_ns);
  void read_all(std::int64_t now_ns, std::vector<MarkerRecord>& out);
  void locate(const ProcessKey& key, Process& process);
  Directory* directory_of(const MarkerPlace& place);
  void list(Directory& directory);
  void open_ring(int directory_fd, const std::string& name, Process& process,
                 const ProcessKey& key);
  void read(const ProcessKey& key, Process& process, MarkerRing::Pass pass, std::int64_t now_ns,
            std::vector<MarkerRecord>& out);
  void drop_unused_directories();

  Options options_;
  std::uint64_t own_pid_namespace_ = 0;  // 0: unknown, then nothing is removed
  std::unordered_map<ProcessKey, Process> processes_;
  std::vector<std::unique_ptr<Directory>> directories_;
  std::int64_t next_scan_ns_ = 0;
  std::uint64_t round_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t unreadable_files_ = 0;
};

}  // namespace tidemark::monitor
