// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/fd.h"
#include "common/result.h"
#include "profiler/reader/trace_values.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::reader {

struct TraceOpenOptions {
  enum class Access {
    kRead,
    kControl,  // the setters below work as well; needs the right to write the file
  };
  Access access = Access::kRead;
  std::optional<uid_t> owner;  // whose file it must be; none: ours
};

struct LiveScanOptions {
  bool keep_all_blocks = false;
  std::vector<std::uint32_t> keep_blocks_of;  // sites, when not all
  std::size_t most_kept_blocks = std::size_t{1} << 20U;
  // Of blocks below this size only so many are kept; which ones is a matter of chance.
  std::uint64_t small_below_bytes = 0;
  std::size_t most_small_blocks = std::size_t{1} << 20U;
  std::function<bool(std::uint32_t site)> with_ages = nullptr;  // sites; nullptr: all
  // Sites; nullptr: all. The others are added up as kOtherSites.
  std::function<bool(std::uint32_t site)> lists = nullptr;
  // Of the blocks that are kept only those that begin there; nullptr: all.
  std::function<bool(std::uint64_t address)> keeps_address = nullptr;
};

// The shared file of one traced process (layout: profiler/wire/trace_layout.h), while it runs and
// after its death. The file belongs to the target, which may write, truncate or corrupt it at any
// moment: it is read with pread(2) only, because a mapping would kill us with SIGBUS, and nothing
// in it is believed unchecked. The descriptor stays readable after the file was removed. Memory is
// bounded by limits of our own, not by what the file claims. Not thread-safe.
class TraceFile {
 public:
  // kMalformed when the file is no trace, kUnsupported when another version wrote it, kPermission
  // when it is a link, no regular file or somebody else's, kNotFound when it is absent or the
  // tracer is still setting it up.
  static Result<TraceFile> open(const std::string& path, const TraceOpenOptions& options = {});
  // The same for a file that is open already (its owner is checked, its path is not known).
  static Result<TraceFile> adopt(Fd file, const TraceOpenOptions& options = {});

  TraceFile(TraceFile&& other) noexcept;
  TraceFile& operator=(TraceFile&& other) noexcept;
  ~TraceFile();

  // As it was when the file was opened.
  const TraceIdentity& identity() const;

  // Reads the header, all site counters, the modules that came since and what new sites lead to:
  // a few milliseconds for 100,000 sites. Fails when the header is damaged or cut off; sites that
  // are damaged or cut off are left out and counted.
  // Only those sites are listed that `keeps` says yes to, which sees them before their stack is
  // known; nullptr: all. Of the hundreds of thousands of a Python program most hold a few bytes.
  Result<TraceSnapshot> snapshot(const std::function<bool(const SiteCounts&)>& keeps = nullptr);

  // What the last snapshot() has seen; grows only. Indices are stable.
  const std::vector<TraceModule>& modules() const;

  // The stack of a site of the last snapshot, innermost frame first, at most 256 frames. Ends early
  // at a node that does not exist; empty for node 0. Holds if is_same() is true afterwards.
  std::vector<StackFrame> stack(std::uint32_t node) const;
  // Whether a site of the last snapshot is still that of the same stack.
  bool is_same(const SiteCounts& site) const;

  // Scans the table of live blocks and mappings, which costs time in proportion to its size (about
  // 50 ms for a million blocks). Blocks of the allocator's own mappings are among them: tell them
  // by the kind of their site.
  Result<LiveScan> live_blocks(const LiveScanOptions& options = {}) const;

  // Orders to the tracer, which takes them up at its next allocation. They need Access::kControl.
  // To go to sampled mode, set the period first.
  Status set_mode(TraceMode mode);
  Status set_sample_every(std::uint64_t bytes);
  // For the blocks that are allocated from now on: seconds since created_ns, or a step.
  Status set_epoch_seconds(std::uint32_t seconds);
  Status set_epoch_step(std::uint32_t step);

 private:
  class State;
  explicit TraceFile(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace tidemark::reader
