// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/ledger_records.h"
#include "monitor/procfs/proc_smaps.h"
#include "profiler/inject/remote_modules.h"

namespace tidemark::heap {

// A stretch of anonymous memory of which it is known what it is.
struct LedgerRegion {
  inject::AddressRange range;
  LedgerKind kind = LedgerKind::kAnonymous;
  std::optional<LedgerKind> free_kind;  // of the part that is not in use
  std::uint64_t free_bytes = 0;         // in RAM
};

// The rows of a ledger, from the mappings of a process. What the kernel says of a mapping is
// divided among the regions in it by how much of each is in RAM; nothing is lost or counted twice,
// whatever the regions claim.
class LedgerRows {
 public:
  // `regions` are by address and do not overlap. `present_bytes`: of a range that is a part of a
  // mapping.
  LedgerRows(std::vector<LedgerRegion> regions,
             std::function<std::uint64_t(std::uint64_t begin, std::uint64_t end)> present_bytes)
      : regions_(std::move(regions)), present_bytes_(std::move(present_bytes)) {}

  // All of them, by address.
  std::vector<LedgerRow> take(std::span<const monitor::SmapsMapping> mappings,
                              std::size_t most_named);

 private:
  void find_programs(std::span<const monitor::SmapsMapping> mappings);
  void add_mapping(const monitor::SmapsMapping& mapping, const monitor::SmapsMapping* before);
  void add_anonymous(const monitor::SmapsMapping& mapping);
  LedgerRow classify(const monitor::SmapsMapping& mapping) const;
  LedgerRow& row(LedgerKind kind, std::string_view name);
  std::vector<LedgerRow> sorted(std::size_t most_named);

  std::vector<LedgerRegion> regions_;
  std::function<std::uint64_t(std::uint64_t, std::uint64_t)> present_bytes_;
  std::unordered_set<std::string> programs_;  // files that are mapped as code
  bool has_gpu_ = false;
  std::vector<LedgerRow> rows_;
  std::unordered_map<std::string, std::size_t> places_;  // in rows_, by kind and name
};

// "/dev/shm/torch_4711_*" of "/dev/shm/torch_4711_2066313905_0": segments that one process has made
// have one row. `maker_pid` is what the name tells of it.
std::string segment_name(std::string_view path, std::optional<std::int64_t>& maker_pid);

}  // namespace tidemark::heap
