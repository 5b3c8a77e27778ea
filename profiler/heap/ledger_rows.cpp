// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/ledger_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "common/text.h"
#include "monitor/procfs/kernel_text.h"
#include "monitor/procfs/shm_pass.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::heap {
namespace {

using monitor::SmapsMapping;
using Backing = SmapsMapping::Backing;

constexpr std::string_view kDeleted = " (deleted)";
constexpr std::string_view kShmFolder = "/dev/shm/";
constexpr std::size_t kMostNameBytes = 4096;

constexpr std::array<std::uint64_t LedgerRow::*, 6> kFigures{
    &LedgerRow::rss_bytes,           &LedgerRow::pss_bytes,  &LedgerRow::footprint_bytes,
    &LedgerRow::pss_footprint_bytes, &LedgerRow::swap_bytes, &LedgerRow::huge_pages_bytes};

bool is_of_gpu(std::string_view name) {
  return name.starts_with("/dev/nvidia") || name.starts_with("/dev/kfd") ||
         name.starts_with("/dev/dri/");
}

LedgerRow figures_of(const SmapsMapping& mapping) {
  LedgerRow row;
  row.count = 1;
  row.rss_bytes = mapping.rss_bytes;
  row.pss_bytes = mapping.pss_bytes;
  row.footprint_bytes = mapping.footprint_bytes();
  row.pss_footprint_bytes = mapping.pss_footprint_bytes();
  row.swap_bytes = mapping.swap_bytes;
  row.huge_pages_bytes = mapping.anon_huge_pages_bytes;
  return row;
}

// Cuts a mapping into parts; what rounding leaves over is in the last one.
class Shares {
 public:
  Shares(LedgerRow whole, std::uint64_t parts) : rest_(std::move(whole)), rest_parts_(parts) {}

  LedgerRow take(std::uint64_t parts) {
    LedgerRow part;
    parts = std::min(parts, rest_parts_);
    const double share =
        rest_parts_ == 0 ? 0.0 : static_cast<double>(parts) / static_cast<double>(rest_parts_);
    for (const auto figure : kFigures) {
      const std::uint64_t bytes =
          parts == rest_parts_
              ? rest_.*figure
              : std::min(rest_.*figure, static_cast<std::uint64_t>(std::llround(
                                            share * static_cast<double>(rest_.*figure))));
      part.*figure = bytes;
      rest_.*figure -= bytes;
    }
    rest_parts_ -= parts;
    return part;
  }

 private:
  LedgerRow rest_;
  std::uint64_t rest_parts_;
};

std::string_view without_deleted(std::string_view name) {
  if (name.ends_with(kDeleted)) {
    name.remove_suffix(kDeleted.size());
  }
  return name;
}

bool looks_like_library(std::string_view name) {
  const std::string_view file = basename_of(without_deleted(name));
  return file.ends_with(".so") || file.find(".so.") != std::string_view::npos;
}

bool may_be_named(LedgerKind kind) {
  return kind == LedgerKind::kProgram || kind == LedgerKind::kFile ||
         kind == LedgerKind::kSharedMemory || kind == LedgerKind::kPinned ||
         kind == LedgerKind::kOther;
}

}  // namespace

std::string segment_name(std::string_view path, std::optional<std::int64_t>& maker_pid) {
  const std::string_view name = without_deleted(path);
  if (!name.starts_with(kShmFolder)) {
    return std::string(path);
  }
  const std::string_view file = name.substr(kShmFolder.size());
  const monitor::ShmName read = monitor::read_shm_name(file);
  if (!read.pid) {
    return std::string(path);
  }
  maker_pid = *read.pid;
  const std::string digits = std::to_string(*read.pid);
  const std::size_t at = file.find(digits);
  if (at == std::string_view::npos || at + digits.size() == file.size()) {
    return std::string(path);
  }
  return fmt::format("{}{}{}*{}", kShmFolder, file.substr(0, at + digits.size()),
                     file.substr(at + digits.size(), 1), path.substr(name.size()));
}

LedgerRow& LedgerRows::row(LedgerKind kind, std::string_view name) {
  name = name.substr(0, kMostNameBytes);
  const auto [place, is_new] =
      places_.try_emplace(fmt::format("{}:{}", static_cast<int>(kind), name), rows_.size());
  if (is_new) {
    rows_.emplace_back().kind = kind;
    rows_.back().name = name;
  }
  return rows_[place->second];
}

void LedgerRows::find_programs(std::span<const SmapsMapping> mappings) {
  for (const SmapsMapping& mapping : mappings) {
    if (mapping.is_executable() && mapping.name.starts_with('/')) {
      programs_.insert(mapping.name);
    }
    has_gpu_ = has_gpu_ || is_of_gpu(mapping.name);
  }
}

LedgerRow LedgerRows::classify(const SmapsMapping& mapping) const {
  LedgerRow row;
  row.name = monitor::undo_octal_escapes(mapping.name);
  const std::string_view name = row.name;
  const auto as = [&](LedgerKind kind, bool keeps_name = false) {
    row.kind = kind;
    row.name = keeps_name ? row.name : std::string();
    return row;
  };
  if (name == "[heap]") {
    return as(LedgerKind::kMalloc);
  }
  if (name.starts_with("[stack")) {
    return as(LedgerKind::kThreadStacks);
  }
  if (name.starts_with("[anon")) {
    return as(mapping.backing == Backing::kShmem ? LedgerKind::kSharedMemory
                                                 : LedgerKind::kAnonymous);
  }
  if (name.starts_with('[')) {
    return as(LedgerKind::kOther);
  }
  if (without_deleted(name).ends_with(wire::kTraceSuffix)) {
    return as(LedgerKind::kTracer);
  }
  if (is_of_gpu(name)) {
    return as(LedgerKind::kPinned, true);
  }
  if (mapping.backing == Backing::kShmem) {
    if (name.starts_with(kSharedAnonymousName)) {  // shared memory without a name
      row.name = kSharedAnonymousName;
      return as(has_gpu_ ? LedgerKind::kPinned : LedgerKind::kSharedMemory, true);
    }
    row.name = segment_name(row.name, row.maker_pid);
    return as(LedgerKind::kSharedMemory, true);
  }
  if (mapping.backing == Backing::kAnonymous) {
    return as(LedgerKind::kAnonymous);
  }
  const bool is_program = programs_.contains(mapping.name) || looks_like_library(name);
  return as(is_program ? LedgerKind::kProgram : LedgerKind::kFile, true);
}

// `before` ends where this one begins.
void LedgerRows::add_mapping(const SmapsMapping& mapping, const SmapsMapping* before) {
  const bool is_nameless = mapping.backing == Backing::kAnonymous && mapping.name.empty();
  const auto region = std::upper_bound(
      regions_.begin(), regions_.end(), mapping.begin,
      [](std::uint64_t at, const LedgerRegion& each) { return at < each.range.end; });
  if (mapping.backing == Backing::kAnonymous && region != regions_.end() &&
      region->range.begin < mapping.end) {
    add_anonymous(mapping);
    return;
  }
  // Variables without a value at first follow the data of their program.
  const bool is_data = is_nameless && mapping.is_writable() && before != nullptr &&
                       before->backing == Backing::kFile && before->end == mapping.begin &&
                       before->name.starts_with('/');
  const LedgerRow kind = classify(is_data ? *before : mapping);
  LedgerRow& sum = row(kind.kind, kind.name);
  sum.maker_pid = kind.maker_pid;
  add_to(sum, figures_of(mapping));
}

void LedgerRows::add_anonymous(const SmapsMapping& mapping) {
  const LedgerKind kind = classify(mapping).kind;
  // What all parts are measured by: what is in RAM, or the addresses where nothing is.
  const bool is_present = mapping.rss_bytes > 0;
  const std::uint64_t all = is_present ? mapping.rss_bytes : mapping.end - mapping.begin;
  Shares shares(figures_of(mapping), all);
  std::uint64_t rest = all;
  const auto take = [&](LedgerKind of, std::uint64_t parts) {
    parts = std::min(parts, rest);
    rest -= parts;
    if (parts > 0) {
      add_to(row(of, ""), shares.take(parts));
    }
    return parts;
  };
  auto region = std::upper_bound(
      regions_.begin(), regions_.end(), mapping.begin,
      [](std::uint64_t at, const LedgerRegion& each) { return at < each.range.end; });
  for (; region != regions_.end() && region->range.begin < mapping.end; ++region) {
    const std::uint64_t begin = std::max(region->range.begin, mapping.begin);
    const std::uint64_t end = std::min(region->range.end, mapping.end);
    const bool is_whole = begin == mapping.begin && end == mapping.end;
    std::uint64_t parts = is_whole || !is_present ? std::min(all, is_whole ? all : end - begin)
                                                  : present_bytes_(begin, end);
    const LedgerKind used = region->kind;
    if (is_present && region->free_kind) {
      const std::uint64_t free =
          take(*region->free_kind, std::min({region->free_bytes, parts, rest}));
      region->free_bytes -= free;
      parts -= std::min(parts, free);
    }
    take(used, parts);
    // A region counts where it begins.
    if (begin == region->range.begin) {
      ++row(used, "").count;
      if (region->free_kind) {
        ++row(*region->free_kind, "").count;
      }
    }
  }
  if (rest > 0) {
    take(kind, rest);
    ++row(kind, "").count;
  }
}

std::vector<LedgerRow> LedgerRows::sorted(std::size_t most_named) {
  std::erase_if(rows_, [](const LedgerRow& each) {
    return each.rss_bytes == 0 && each.swap_bytes == 0 && each.footprint_bytes == 0;
  });
  const auto order = [](const LedgerRow& a, const LedgerRow& b) {
    const auto size = [](const LedgerRow& each) { return each.rss_bytes + each.swap_bytes; };
    return std::pair(size(b), a.name) < std::pair(size(a), b.name);
  };
  std::stable_sort(rows_.begin(), rows_.end(), order);
  std::vector<LedgerRow> kept;
  std::size_t named = 0;
  for (LedgerRow& each : rows_) {
    if (each.name.empty() || (may_be_named(each.kind) && named < most_named)) {
      named += each.name.empty() ? 0U : 1U;
      kept.push_back(std::move(each));
      continue;
    }
    const auto rest = std::find_if(kept.begin(), kept.end(), [&](const LedgerRow& other) {
      return other.kind == each.kind && other.name.empty();
    });
    if (rest == kept.end()) {
      kept.push_back(std::move(each));
      kept.back().name.clear();
      kept.back().maker_pid.reset();
    } else {
      add_to(*rest, each);
    }
  }
  std::stable_sort(kept.begin(), kept.end(), order);
  return kept;
}

std::vector<LedgerRow> LedgerRows::take(std::span<const SmapsMapping> mappings,
                                        std::size_t most_named) {
  find_programs(mappings);
  const SmapsMapping* before = nullptr;
  for (const SmapsMapping& mapping : mappings) {
    add_mapping(mapping, before);
    before = &mapping;
  }
  return sorted(most_named);
}

}  // namespace tidemark::heap
