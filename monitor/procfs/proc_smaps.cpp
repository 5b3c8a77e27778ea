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

struct SumLine {
  std::string_view key;
  std::uint64_t PssFields::*field;
};

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

// Longest line of a mapping: a path of 4096 bytes, each at worst escaped to 4.
constexpr std::size_t kMaxLineBytes = 32U << 10U;

bool take_hex(std::string_view& text, std::uint64_t& value) {
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, /*base=*/16);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc{};
}

template <std::size_t N>
bool add_field(PssFields& sums, const std::array<SumLine, N>& lines, const SmapsField& field) {
  for (const SumLine& line : lines) {
    if (field.key == line.key) {
      sums.*line.field += field.bytes;
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
  take_word(line);  // permissions
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

SmapsAccumulator::Backing SmapsAccumulator::backing_of(const MappingHead& head) {
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

void SmapsAccumulator::close_mapping() {
  const Mapping m = std::exchange(mapping_, {});
  if (m.backing == Backing::kAnonymous) {
    sums_.pss_anon_bytes += m.pss_bytes;
    return;
  }
  // Copied pages are private, until a fork shares them: what exceeds the private part is charged
  // at the mean share of this mapping's shared pages.
  const std::uint64_t anonymous = std::min(m.anonymous_bytes, m.rss_bytes);
  const std::uint64_t own = std::min(anonymous, m.private_bytes);
  const std::uint64_t shared_pss = m.pss_bytes - std::min(m.pss_bytes, m.private_bytes);
  const std::uint64_t shared_rss = m.rss_bytes - std::min(m.rss_bytes, m.private_bytes);
  const std::uint64_t copied =
      std::min(own + scaled(anonymous - own, shared_pss, shared_rss), m.pss_bytes);
  sums_.pss_anon_bytes += copied;
  (m.backing == Backing::kShmem ? sums_.pss_shmem_bytes : sums_.pss_file_bytes) +=
      m.pss_bytes - copied;
}

void SmapsAccumulator::add_line(std::string_view line) {
  if (const auto head = parse_mapping_head(line)) {
    close_mapping();
    mapping_.backing = backing_of(*head);
    inside_ = true;
    return;
  }
  malformed_ = malformed_ || !inside_;
  const auto field = parse_smaps_field(line);
  if (!field) {
    return;
  }
  add_field(sums_, kSumLines, *field);
  if (field->key == "Rss") {
    mapping_.rss_bytes = field->bytes;
  } else if (field->key == "Pss") {
    mapping_.pss_bytes = field->bytes;
  } else if (field->key == "Private_Clean" || field->key == "Private_Dirty") {
    mapping_.private_bytes += field->bytes;
  } else if (field->key == "Anonymous") {
    mapping_.anonymous_bytes = field->bytes;
  }
}

void SmapsAccumulator::add(std::string_view piece) {
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

Result<PssFields> SmapsAccumulator::finish() {
  if (!unfinished_line_.empty()) {
    add_line(std::exchange(unfinished_line_, {}));
  }
  close_mapping();
  if (malformed_) {
    return Error{Errc::kMalformed, "not a /proc/PID/smaps"};
  }
  sums_.split_estimated = true;
  return sums_;
}

}  // namespace tidemark::monitor
