// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "profiler/reader/trace_image.h"
#include "profiler/reader/trace_values.h"

namespace tidemark::reader {

// The modules of a process, kept from one reading to the next. A module that is not yet written or
// makes no sense keeps its index with an empty range.
class ModuleList {
 public:
  // Reads the modules that came, or were completed, since the last call.
  void extend(int fd, const TraceHeader& header);

  const std::vector<TraceModule>& all() const { return modules_; }
  std::uint64_t damaged() const { return damaged_; }

  // The module in which `address` was when so many modules were listed.
  std::optional<std::uint32_t> find(std::uint64_t address, std::uint32_t listed) const;

 private:
  // False when it must be looked at again.
  bool take(int fd, const TraceHeader& header, const wire::Module& raw, TraceModule& module);
  void sort();

  std::vector<TraceModule> modules_;
  std::vector<std::uint32_t> unfinished_;
  std::uint64_t damaged_ = 0;

  // Sorted by begin; `most_end` is the largest end up to here, so that a search backwards can stop.
  struct Place {
    std::uint64_t begin;
    std::uint64_t most_end;
    std::uint32_t module;
  };
  std::vector<Place> places_;
};

}  // namespace tidemark::reader
