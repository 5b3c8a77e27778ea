// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/proc_smaps.h"

#include <algorithm>
#include <array>
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

struct Field {
  std::string_view key;
  std::uint64_t bytes = 0;
};

// "Pss:      414 kB"; false for other lines (VmFlags, THPeligible).
bool read_field(std::string_view line, Field& field) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !line.ends_with(" kB")) {
    return false;
  }
  const auto bytes = kib_field_bytes(line.substr(colon + 1));
  field = {line.substr(0, colon), bytes.value_or(0)};
  return bytes.has_value();
}

template <std::size_t N>
bool add_field(PssFields& sums, const std::array<SumLine, N>& lines, const Field& field) {
  for (const SumLine& line : lines) {
    if (field.key == line.key) {
      sums.*line.field += field.bytes;
      return true;
    }
  }
  return false;
}

// "55d0-55e0 r--p ...": a range of lower-case hexadecimal addresses; fields begin in upper case.
bool is_header(std::string_view line) {
  const std::size_t end = line.find_first_not_of("0123456789abcdef");
  return end != 0 && end != std::string_view::npos && line[end] == '-';
}

std::uint64_t scaled(std::uint64_t bytes, std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) {
    return 0;
  }
  const double share = static_cast<double>(part) / static_cast<double>(whole);
  return static_cast<std::uint64_t>(std::llround(static_cast<double>(bytes) * share));
}

}  // namespace

Result<PssFields> parse_smaps_rollup(std::string_view text) {
  PssFields fields;
  std::size_t split_lines = 0;
  bool has_pss = false;
  std::string_view line;
  Field field;
  while (take_line(text, line)) {
    if (!read_field(line, field)) {
      continue;
    }
    has_pss = has_pss || field.key == "Pss";
    if (!add_field(fields, kSumLines, field) && add_field(fields, kSplitLines, field)) {
      ++split_lines;
    }
  }
  if (!has_pss) {
    return Error{Errc::kMalformed, "not a /proc/PID/smaps_rollup: no Pss line"};
  }
  fields.split_estimated = split_lines < kSplitLines.size();
  return fields;
}

SmapsAccumulator::Backing SmapsAccumulator::backing_of(std::string_view header) {
  take_word(header);  // range
  take_word(header);  // permissions
  take_word(header);  // offset
  take_word(header);  // device
  const std::string_view inode = take_word(header);
  if (inode == "0" || inode.empty()) {
    return Backing::kAnonymous;
  }
  header.remove_prefix(std::min(header.find_first_not_of(' '), header.size()));
  // Shared anonymous memory, System V segments, memfds, POSIX shared memory, and what graphics
  // drivers allocate through shmem.
  constexpr std::array<std::string_view, 5> kShmemPaths{"/dev/zero", "/SYSV",
                                                        "/memfd:", "/dev/shm/", "/drm mm object"};
  const bool shmem = std::any_of(kShmemPaths.begin(), kShmemPaths.end(),
                                 [&](std::string_view path) { return header.starts_with(path); });
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
  if (is_header(line)) {
    close_mapping();
    mapping_.backing = backing_of(line);
    inside_ = true;
    return;
  }
  malformed_ = malformed_ || !inside_;
  Field field;
  if (!read_field(line, field)) {
    return;
  }
  add_field(sums_, kSumLines, field);
  if (field.key == "Rss") {
    mapping_.rss_bytes = field.bytes;
  } else if (field.key == "Pss") {
    mapping_.pss_bytes = field.bytes;
  } else if (field.key == "Private_Clean" || field.key == "Private_Dirty") {
    mapping_.private_bytes += field.bytes;
  } else if (field.key == "Anonymous") {
    mapping_.anonymous_bytes = field.bytes;
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
