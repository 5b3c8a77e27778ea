// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#define TIDEMARK_LAYOUT_ONLY
#include "api/tidemark.h"

#include "common/fd.h"

namespace tidemark::tests {

// A marker file made by hand, in which a test can write what no honest process would.
class RingFile {
 public:
  // A file without a name.
  RingFile(std::uint32_t pid, std::uint64_t start_ticks);
  // A file at `path`.
  RingFile(std::uint32_t pid, std::uint64_t start_ticks, const std::string& path);

  // A second descriptor of the file, read-only in spirit.
  Fd reader() const;

  // The header as it is in the file; put() writes it back.
  tidemark_ring_header header{};
  void put() const;

  // Writes the next record, published.
  void mark(std::uint32_t kind, std::int64_t value, std::string_view name, std::uint64_t time_ns);
  void step(std::int64_t value, std::uint64_t time_ns = 1) {
    mark(TIDEMARK_KIND_STEP, value, {}, time_ns);
  }
  // Takes a number as a writer does that dies before it publishes.
  void reserve();
  void put_record(std::uint64_t index, const tidemark_ring_record& record) const;
  void truncate(std::uint64_t bytes) const;

 private:
  Fd fd_;
};

}  // namespace tidemark::tests
