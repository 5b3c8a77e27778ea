// SPDX-License-Identifier: Apache-2.0
#include "recording/import/csv_header.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "common/text.h"
#include "recording/import/csv_line.h"

namespace tidemark::recording {
namespace {

struct UnitName {
  std::string_view suffix;
  double factor;
};

constexpr double kKib = 1024.0;
constexpr double kMib = kKib * kKib;
constexpr double kGib = kMib * kKib;

constexpr UnitName kSizeUnits[] = {
    {"bytes", 1.0}, {"byte", 1.0}, {"b", 1.0},  {"kib", kKib}, {"kb", kKib}, {"k", kKib},
    {"mib", kMib},  {"mb", kMib},  {"m", kMib}, {"gib", kGib}, {"gb", kGib}, {"g", kGib},
};
constexpr UnitName kTimeUnits[] = {
    {"s", 1.0},     {"sec", 1.0},      {"secs", 1.0}, {"seconds", 1.0},
    {"ms", 1e-3},   {"us", 1e-6},      {"ns", 1e-9},  {"min", 60.0},
    {"mins", 60.0}, {"minutes", 60.0}, {"h", 3600.0}, {"hours", 3600.0},
};

enum class UnitKind { kNone, kTime, kSize };

struct KnownName {
  std::string_view name;
  CsvField field;
  UnitKind unit;
  double default_unit;  // 0: the values have to tell
};

// Where two columns of a file mean the same field, the name that stands first here wins.
constexpr KnownName kKnownNames[] = {
    {"t", CsvField::kTime, UnitKind::kTime, 0},
    {"time", CsvField::kTime, UnitKind::kTime, 0},
    {"timestamp", CsvField::kTime, UnitKind::kTime, 0},
    {"elapsed", CsvField::kTime, UnitKind::kTime, 0},
    {"elapsed_time", CsvField::kTime, UnitKind::kTime, 0},
    {"datetime", CsvField::kTime, UnitKind::kTime, 0},
    {"date", CsvField::kTime, UnitKind::kTime, 0},
    {"seconds", CsvField::kTime, UnitKind::kNone, 1.0},
    {"minutes", CsvField::kTime, UnitKind::kNone, 60.0},
    {"hours", CsvField::kTime, UnitKind::kNone, 3600.0},
    {"step", CsvField::kStep, UnitKind::kNone, 0},
    {"steps", CsvField::kStep, UnitKind::kNone, 0},
    {"global_step", CsvField::kStep, UnitKind::kNone, 0},
    {"iteration", CsvField::kStep, UnitKind::kNone, 0},
    {"iter", CsvField::kStep, UnitKind::kNone, 0},
    {"batch", CsvField::kStep, UnitKind::kNone, 0},
    {"epoch", CsvField::kEpoch, UnitKind::kNone, 0},
    {"scope", CsvField::kScope, UnitKind::kNone, 0},
    {"pid", CsvField::kPid, UnitKind::kNone, 0},
    {"start_ticks", CsvField::kStartTicks, UnitKind::kNone, 0},
    {"ppid", CsvField::kPpid, UnitKind::kNone, 0},
    {"comm", CsvField::kName, UnitKind::kNone, 0},
    {"name", CsvField::kName, UnitKind::kNone, 0},
    {"process", CsvField::kName, UnitKind::kNone, 0},
    {"role", CsvField::kRole, UnitKind::kNone, 0},
    {"rank", CsvField::kRank, UnitKind::kNone, 0},
    {"processes", CsvField::kProcesses, UnitKind::kNone, 0},
    {"state", CsvField::kState, UnitKind::kNone, 0},
    {"threads", CsvField::kThreads, UnitKind::kNone, 0},
    {"pss_age", CsvField::kPssAge, UnitKind::kTime, 1.0},
    {"rss", CsvField::kRss, UnitKind::kSize, 0},
    {"vmrss", CsvField::kRss, UnitKind::kSize, 0},
    {"mem_real", CsvField::kRss, UnitKind::kSize, kMib},  // psrecord --log-format csv
    {"memory", CsvField::kRss, UnitKind::kSize, 0},
    {"mem", CsvField::kRss, UnitKind::kSize, 0},
    {"memory_usage", CsvField::kRss, UnitKind::kSize, 0},
    {"mem_usage", CsvField::kRss, UnitKind::kSize, 0},
    {"memory_used", CsvField::kRss, UnitKind::kSize, 0},
    {"mem_used", CsvField::kRss, UnitKind::kSize, 0},
    {"process_memory", CsvField::kRss, UnitKind::kSize, 0},
    {"ram", CsvField::kRss, UnitKind::kSize, 0},
    {"used", CsvField::kRss, UnitKind::kSize, 0},
    {"value", CsvField::kRss, UnitKind::kSize, 0},
    {"rss_anon", CsvField::kRssAnon, UnitKind::kSize, 0},
    {"rssanon", CsvField::kRssAnon, UnitKind::kSize, 0},
    {"rss_file", CsvField::kRssFile, UnitKind::kSize, 0},
    {"rssfile", CsvField::kRssFile, UnitKind::kSize, 0},
    {"rss_shmem", CsvField::kRssShmem, UnitKind::kSize, 0},
    {"rssshmem", CsvField::kRssShmem, UnitKind::kSize, 0},
    {"swap", CsvField::kSwap, UnitKind::kSize, 0},
    {"vmswap", CsvField::kSwap, UnitKind::kSize, 0},
    {"mem_swap", CsvField::kSwap, UnitKind::kSize, kMib},  // psrecord
    {"hwm", CsvField::kHwm, UnitKind::kSize, 0},
    {"vmhwm", CsvField::kHwm, UnitKind::kSize, 0},
    {"pss", CsvField::kPss, UnitKind::kSize, 0},
    {"pss_footprint", CsvField::kPssFootprint, UnitKind::kSize, 0},
    {"uss", CsvField::kUss, UnitKind::kSize, 0},
    {"footprint", CsvField::kFootprint, UnitKind::kSize, 0},
};

// "RSS (MB)" -> "rss_mb". A share of something is no size: a name with a percent sign is kept
// apart from ours.
std::string normalised(std::string_view name) {
  std::string out;
  for (const char c : trim(name)) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    if (is_upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '%') {
      out += is_upper ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (!out.empty() && out.back() != '_') {
      out += '_';
    }
  }
  if (!out.empty() && out.back() == '_') {
    out.pop_back();
  }
  return out;
}

std::span<const UnitName> units_of(UnitKind kind) {
  switch (kind) {
    case UnitKind::kTime:
      return kTimeUnits;
    case UnitKind::kSize:
      return kSizeUnits;
    case UnitKind::kNone:
      break;
  }
  return {};
}

struct Match {
  std::size_t rank;  // position in kKnownNames: lower is better
  std::optional<double> unit;
};

std::optional<Match> match(std::string_view column, const KnownName& known, std::size_t rank) {
  if (!column.starts_with(known.name)) {
    return std::nullopt;
  }
  std::string_view rest = column.substr(known.name.size());
  if (rest.empty()) {
    return Match{rank, known.default_unit > 0 ? std::optional(known.default_unit) : std::nullopt};
  }
  if (rest.front() != '_') {
    return std::nullopt;
  }
  rest.remove_prefix(1);
  for (const UnitName& unit : units_of(known.unit)) {
    if (rest == unit.suffix) {
      return Match{rank, unit.factor};
    }
  }
  return std::nullopt;
}

char guess_separator(std::string_view line) {
  char best = ',';
  std::ptrdiff_t most = 0;
  for (const char candidate : {',', ';', '\t'}) {
    const auto count = std::count(line.begin(), line.end(), candidate);
    if (count > most) {
      most = count;
      best = candidate;
    }
  }
  return best;
}

Error missing_column(std::string_view what, std::string_view names, std::string_view line,
                     std::string_view file) {
  return Error{Errc::kMalformed,
               fmt::format("{}: found no column for the {} in the header '{}'; name it {}", file,
                           what, shorten(escape_text(line), 120), names)};
}

}  // namespace

Result<CsvHeader> parse_csv_header(std::string_view line, std::string_view file) {
  CsvHeader header;
  header.separator = guess_separator(line);
  std::vector<std::string_view> names;
  std::string scratch;
  if (!split_csv_line(line, header.separator, names, scratch)) {
    return Error{Errc::kMalformed, fmt::format("{}: the quotes of its header do not match", file)};
  }
  header.columns = names.size();
  std::array<std::size_t, kCsvFieldCount> ranks;
  ranks.fill(std::size(kKnownNames));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string name = normalised(names[i]);
    for (std::size_t rank = 0; rank < std::size(kKnownNames); ++rank) {
      const auto field = static_cast<std::size_t>(kKnownNames[rank].field);
      const auto found = match(name, kKnownNames[rank], rank);
      if (found && found->rank < ranks[field]) {
        ranks[field] = found->rank;
        header.fields[field] = CsvColumn{i, std::string(trim(names[i])), found->unit};
      }
    }
  }
  if (!header[CsvField::kTime] && !header[CsvField::kStep]) {
    return missing_column("time", "t_s, time, timestamp, elapsed or step", line, file);
  }
  const auto sizes = std::span(header.fields).subspan(kFirstSizeField);
  if (std::none_of(sizes.begin(), sizes.end(), [](const auto& f) { return f.has_value(); })) {
    return missing_column("memory", "rss_bytes, rss_kb, rss_mb, pss_mb, memory_mb or the like",
                          line, file);
  }
  return header;
}

}  // namespace tidemark::recording
