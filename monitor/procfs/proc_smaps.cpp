// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/proc_smaps.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "monitor/procfs/kernel_text.h"

namespace tidemark::monitor {
namespace {

template <typename Record>
struct FieldLine {
  std::string_view key;
  std::uint64_t Record::*field;
};
using SumLine = FieldLine<PssFields>;

constexpr std::array<SumLine, 7> kSumLines{{
    {"Rss", &PssFields::rss_bytes},
    {"Pss", &PssFields::pss_bytes},
    {"Private_Clean", &PssFields::private_clean_bytes},
    {"Private_Dirty", &PssFields::private_dirty_bytes},
    {"Anonymous", &PssFields::anonymous_bytes},
    {"AnonHugePages", &PssFields::anon_huge_pages_bytes},
    {"SwapPss", &PssFields::swap_pss_bytes},
}};

constexpr std::array<SumLine, 3> kSplitLines{{
    {"Pss_Anon", &PssFields::pss_anon_bytes},
    {"Pss_File", &PssFields::pss_file_bytes},
    {"Pss_Shmem", &PssFields::pss_shmem_bytes},
}};

using MappingLine = FieldLine<SmapsMapping>;
constexpr std::array<MappingLine, 10> kMappingLines{{
    {"Rss", &SmapsMapping::rss_bytes},
    {"Pss", &SmapsMapping::pss_bytes},
    {"Private_Clean", &SmapsMapping::private_clean_bytes},
    {"Private_Dirty", &SmapsMapping::private_dirty_bytes},
    {"Anonymous", &SmapsMapping::anonymous_bytes},
    {"AnonHugePages", &SmapsMapping::anon_huge_pages_bytes},
    {"Swap", &SmapsMapping::swap_bytes},
    {"SwapPss", &SmapsMapping::swap_pss_bytes},
    {"Private_Hugetlb", &SmapsMapping::hugetlb_bytes},
    {"Shared_Hugetlb", &SmapsMapping::hugetlb_bytes},
}};

// Longest line of a mapping: a path of 4096 bytes, each at worst escaped to 4.
constexpr std::size_t kMaxLineBytes = 32U << 10U;

bool take_hex(std::string_view& text, std::uint64_t& value) {
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, /*base=*/16);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc{};
}

template <typename Record, std::size_t N>
bool add_field(Record& record, const std::array<FieldLine<Record>, N>& lines,
               const SmapsField& field) {
  for (const FieldLine<Record>& line : lines) {
    if (field.key == line.key) {
      record.*line.field += field.bytes;
      return true;
    }
  }
  return false;
}

std::uint64_t scaled(std::uint64_t bytes, std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) {
    return 0;
  }
  const double share = static_cast<double>(part) / static_cast<double>(whole);
  return static_cast<std::uint64_t>(std::llround(static_cast<double>(bytes) * share));
}

SmapsMapping::Backing backing_of(const MappingHead& head) {
  using Backing = SmapsMapping::Backing;
  if (head.inode == "0" || head.inode.empty()) {
    return Backing::kAnonymous;
  }
  // Shared anonymous memory, System V segments, memfds, POSIX shared memory, and what graphics
  // drivers allocate through shmem.
  constexpr std::array<std::string_view, 5> kShmemPaths{"/dev/zero", "/SYSV",
                                                        "/memfd:", "/dev/shm/", "/drm mm object"};
  const bool shmem =
      std::any_of(kShmemPaths.begin(), kShmemPaths.end(),
                  [&](std::string_view path) { return head.name.starts_with(path); });
  return shmem ? Backing::kShmem : Backing::kFile;
}

}  // namespace

std::optional<MappingHead> parse_mapping_head(std::string_view line) {
  MappingHead head;
  if (!take_hex(line, head.begin) || !line.starts_with('-')) {
    return std::nullopt;
  }
  line.remove_prefix(1);
  if (!take_hex(line, head.end) || head.end <= head.begin || !line.starts_with(' ')) {
    return std::nullopt;
  }
  head.permissions = take_word(line);
  take_word(line);  // offset
  head.device = take_word(line);
  head.inode = take_word(line);
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  head.name = line;
  return head;
}

std::optional<SmapsField> parse_smaps_field(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !line.ends_with(" kB")) {
    return std::nullopt;
  }
  const auto bytes = kib_field_bytes(line.substr(colon + 1));
  return bytes ? std::optional(SmapsField{line.substr(0, colon), *bytes}) : std::nullopt;
}

Result<PssFields> parse_smaps_rollup(std::string_view text) {
  PssFields fields;
  std::size_t split_lines = 0;
  bool has_pss = false;
  std::string_view line;
  while (take_line(text, line)) {
    const auto field = parse_smaps_field(line);
    if (!field) {
      continue;
    }
    has_pss = has_pss || field->key == "Pss";
    if (!add_field(fields, kSumLines, *field) && add_field(fields, kSplitLines, *field)) {
      ++split_lines;
    }
  }
  if (!has_pss) {
    return Error{Errc::kMalformed, "not a /proc/PID/smaps_rollup: no Pss line"};
  }
  fields.split_estimated = split_lines < kSplitLines.size();
  return fields;
}

std::uint64_t SmapsMapping::footprint_bytes() const {
  if (backing == Backing::kShmem) {
    return rss_bytes;  // what of a segment is in swap is not charged to any process
  }
  return std::min(anonymous_bytes, rss_bytes) + swap_bytes;
}

std::uint64_t SmapsMapping::pss_anon_bytes() const {
  if (backing == Backing::kAnonymous) {
    return pss_bytes;
  }
  // Copied pages are private, until a fork shares them: what exceeds the private part is charged
  // at the mean share of this mapping's shared pages.
  const std::uint64_t private_bytes = private_clean_bytes + private_dirty_bytes;
  const std::uint64_t anonymous = std::min(anonymous_bytes, rss_bytes);
  const std::uint64_t own = std::min(anonymous, private_bytes);
  const std::uint64_t shared_pss = pss_bytes - std::min(pss_bytes, private_bytes);
  const std::uint64_t shared_rss = rss_bytes - std::min(rss_bytes, private_bytes);
  return std::min(own + scaled(anonymous - own, shared_pss, shared_rss), pss_bytes);
}

void SmapsReader::close_mapping() {
  if (inside_) {
    take_(mapping_);
  }
  inside_ = false;
}

void SmapsReader::add_line(std::string_view line) {
  if (const auto head = parse_mapping_head(line)) {
    close_mapping();
    mapping_ = {};
    mapping_.begin = head->begin;
    mapping_.end = head->end;
    mapping_.permissions = head->permissions;
    mapping_.device = head->device;
    mapping_.inode = head->inode;
    mapping_.name = head->name;
    mapping_.backing = backing_of(*head);
    inside_ = true;
    return;
  }
  malformed_ = malformed_ || !inside_;
  if (const auto field = parse_smaps_field(line)) {
    add_field(mapping_, kMappingLines, *field);
  }
}

void SmapsReader::add(std::string_view piece) {
  while (!piece.empty() && !malformed_) {
    const std::size_t end = piece.find('\n');
    if (end == std::string_view::npos) {
      unfinished_line_ += piece;
      malformed_ = unfinished_line_.size() > kMaxLineBytes;
      return;
    }
    if (unfinished_line_.empty()) {
      add_line(piece.substr(0, end));
    } else {
      unfinished_line_ += piece.substr(0, end);
      add_line(unfinished_line_);
      unfinished_line_.clear();
    }
    piece.remove_prefix(end + 1);
  }
}

Status SmapsReader::finish() {
  if (!unfinished_line_.empty()) {
    add_line(std::exchange(unfinished_line_, {}));
  }
  close_mapping();
  return malformed_ ? Status(Error{Errc::kMalformed, "not a /proc/PID/smaps"}) : ok();
}

void SmapsAccumulator::add_mapping(const SmapsMapping& mapping) {
  sums_.rss_bytes += mapping.rss_bytes;
  sums_.pss_bytes += mapping.pss_bytes;
  sums_.pss_anon_bytes += mapping.pss_anon_bytes();
  sums_.pss_shmem_bytes += mapping.pss_shmem_bytes();
  sums_.pss_file_bytes += mapping.pss_bytes - mapping.pss_anon_bytes() - mapping.pss_shmem_bytes();
  sums_.swap_pss_bytes += mapping.swap_pss_bytes;
  sums_.private_clean_bytes += mapping.private_clean_bytes;
  sums_.private_dirty_bytes += mapping.private_dirty_bytes;
  sums_.anonymous_bytes += mapping.anonymous_bytes;
  sums_.anon_huge_pages_bytes += mapping.anon_huge_pages_bytes;
}

Result<PssFields> SmapsAccumulator::finish() {
  TIDEMARK_TRY(reader_.finish());
  sums_.split_estimated = true;
  return sums_;
}

}  // namespace tidemark::monitor
