// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"

namespace tidemark::monitor {

// The first line of a mapping in /proc/PID/maps and smaps. Points into the line.
struct MappingHead {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string_view device;
  std::string_view inode;  // "0": no file
  std::string_view name;   // a path, "[heap]", ...; mostly empty for anonymous memory
};
// "55d0-55e0 rw-p 00000000 00:00 0    [heap]"; nullopt: not the first line of a mapping.
std::optional<MappingHead> parse_mapping_head(std::string_view line);

// A further line of a mapping, or one of smaps_rollup: "Pss:      414 kB".
struct SmapsField {
  std::string_view key;  // "Pss"
  std::uint64_t bytes = 0;
};
// nullopt for other lines (VmFlags, THPeligible).
std::optional<SmapsField> parse_smaps_field(std::string_view line);

// Memory of a process with shared pages divided among those that map them.
struct PssFields {
  std::uint64_t rss_bytes = 0;
  std::uint64_t pss_bytes = 0;
  std::uint64_t pss_anon_bytes = 0;
  std::uint64_t pss_file_bytes = 0;
  std::uint64_t pss_shmem_bytes = 0;
  std::uint64_t swap_pss_bytes = 0;
  std::uint64_t private_clean_bytes = 0;
  std::uint64_t private_dirty_bytes = 0;
  std::uint64_t anonymous_bytes = 0;
  std::uint64_t anon_huge_pages_bytes = 0;
  bool split_estimated = false;  // the kernel gave no Pss_Anon/Pss_Shmem; derived per mapping

  std::uint64_t uss_bytes() const { return private_clean_bytes + private_dirty_bytes; }
  // Immune to neighbours that map the same libraries; each shared page counts once in a sum.
  std::uint64_t footprint_bytes() const {
    return pss_anon_bytes + pss_shmem_bytes + swap_pss_bytes;
  }
};

// /proc/PID/smaps_rollup (kernel 4.14+). The split exists since 5.9; before, `split_estimated` is
// set, the split fields are 0 and the caller has to read smaps.
Result<PssFields> parse_smaps_rollup(std::string_view text);

// Sums /proc/PID/smaps, which can be many MB, as it comes. The kernel gives no split per mapping:
// it is derived from what is mapped (`split_estimated` is set), exactly but for mappings that hold
// file pages and copied pages both shared with others.
class SmapsAccumulator {
 public:
  // The next piece of the file, cut anywhere.
  void add(std::string_view piece);
  // Once, after the last piece. kMalformed when the text was no smaps; empty text sums to 0.
  Result<PssFields> finish();

 private:
  // What the pages of a mapping are, apart from those that were copied on write.
  enum class Backing { kAnonymous, kShmem, kFile };
  struct Mapping {
    Backing backing = Backing::kFile;
    std::uint64_t rss_bytes = 0;
    std::uint64_t pss_bytes = 0;
    std::uint64_t private_bytes = 0;
    std::uint64_t anonymous_bytes = 0;
  };

  static Backing backing_of(const MappingHead& head);
  void add_line(std::string_view line);
  void close_mapping();

  PssFields sums_;
  Mapping mapping_;
  std::string unfinished_line_;
  bool inside_ = false;
  bool malformed_ = false;
};

}  // namespace tidemark::monitor
