// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/result.h"

namespace tidemark::monitor {

// The first line of a mapping in /proc/PID/maps and smaps. Points into the line.
struct MappingHead {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string_view device;
  std::string_view inode;        // "0": no file
  std::string_view name;         // a path, "[heap]", ...; mostly empty for anonymous memory
  std::string_view permissions;  // "rw-p"
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

// One mapping of /proc/PID/smaps.
struct SmapsMapping {
  // What its pages are, apart from those that were copied on write.
  enum class Backing { kAnonymous, kShmem, kFile };

  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string permissions;  // "rw-p"
  std::string device;       // "08:01"
  std::string inode;
  std::string name;  // as the kernel writes it: raw bytes, line ends as "\012"
  Backing backing = Backing::kFile;
  std::uint64_t rss_bytes = 0;
  std::uint64_t pss_bytes = 0;
  std::uint64_t private_clean_bytes = 0;
  std::uint64_t private_dirty_bytes = 0;
  std::uint64_t anonymous_bytes = 0;
  std::uint64_t anon_huge_pages_bytes = 0;
  std::uint64_t swap_bytes = 0;
  std::uint64_t swap_pss_bytes = 0;
  std::uint64_t hugetlb_bytes = 0;  // reserved huge pages: in no other figure

  bool is_readable() const { return permissions.starts_with('r'); }
  bool is_writable() const { return permissions.find('w') == 1; }
  bool is_executable() const { return permissions.find('x') == 2; }
  // What is anonymous or shared memory, or in swap: of the process, and with shared pages divided.
  std::uint64_t footprint_bytes() const;
  std::uint64_t pss_footprint_bytes() const {
    return pss_anon_bytes() + pss_shmem_bytes() + swap_pss_bytes;
  }
  // The kernel gives no split of Pss per mapping: it is derived from what is mapped, exactly but
  // for mappings that hold file pages and copied pages both shared with others.
  std::uint64_t pss_anon_bytes() const;
  std::uint64_t pss_shmem_bytes() const {
    return backing == Backing::kShmem ? pss_bytes - pss_anon_bytes() : 0;
  }
};

// Takes /proc/PID/smaps, which can be many MB, apart as it comes.
class SmapsReader {
 public:
  // `take` gets each mapping when it is complete, in the order of addresses.
  explicit SmapsReader(std::function<void(const SmapsMapping& mapping)> take)
      : take_(std::move(take)) {}

  // The next piece of the file, cut anywhere.
  void add(std::string_view piece);
  // Once, after the last piece. kMalformed when the text was no smaps.
  Status finish();

 private:
  void add_line(std::string_view line);
  void close_mapping();

  std::function<void(const SmapsMapping&)> take_;
  SmapsMapping mapping_;
  std::string unfinished_line_;
  bool inside_ = false;
  bool malformed_ = false;
};

// Sums /proc/PID/smaps. `split_estimated` is set, see SmapsMapping.
class SmapsAccumulator {
 public:
  SmapsAccumulator() = default;
  SmapsAccumulator(const SmapsAccumulator&) = delete;  // the reader refers to it
  SmapsAccumulator& operator=(const SmapsAccumulator&) = delete;

  void add(std::string_view piece) { reader_.add(piece); }
  // Once, after the last piece. kMalformed when the text was no smaps; empty text sums to 0.
  Result<PssFields> finish();

 private:
  void add_mapping(const SmapsMapping& mapping);

  PssFields sums_;
  SmapsReader reader_{[this](const SmapsMapping& mapping) { add_mapping(mapping); }};
};

}  // namespace tidemark::monitor
