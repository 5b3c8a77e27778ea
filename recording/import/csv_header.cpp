// SPDX-License-Identifier: Apache-2.0
#include "recording/import/csv_header.h"

#include <algorithm>
#include <span>
#include <vector>

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
  double default_unit;  // 0: decided by the first value
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
    {"footprint", CsvField::kFootprint, UnitKind::kSize, 0},
};

// Other names for fields of a sample than their own; those win in this order as well.
struct OtherName {
  std::string_view name;
  std::string_view field;
  double default_unit = 0.0;
};
constexpr OtherName kOtherNames[] = {
    {"vmrss", "rss_bytes"},
    {"mem_real", "rss_bytes", kMib},  // psrecord --log-format csv
    {"memory", "rss_bytes"},
    {"mem", "rss_bytes"},
    {"memory_usage", "rss_bytes"},
    {"mem_usage", "rss_bytes"},
    {"memory_used", "rss_bytes"},
    {"mem_used", "rss_bytes"},
    {"process_memory", "rss_bytes"},
    {"ram", "rss_bytes"},
    {"used", "rss_bytes"},
    {"value", "rss_bytes"},
    {"rssanon", "rss_anon_bytes"},
    {"rssfile", "rss_file_bytes"},
    {"rssshmem", "rss_shmem_bytes"},
    {"vmswap", "swap_bytes"},
    {"mem_swap", "swap_bytes", kMib},  // psrecord
    {"vmhwm", "hwm_bytes"},
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

// The unit of a column that means the field `name`; 0: the first value decides. nullopt: the column
// means something else.
std::optional<double> match(std::string_view column, std::string_view name, UnitKind kind,
                            double default_unit) {
  if (!column.starts_with(name)) {
    return std::nullopt;
  }
  std::string_view rest = column.substr(name.size());
  if (rest.empty()) {
    return default_unit;
  }
  if (rest.front() != '_') {
    return std::nullopt;
  }
  rest.remove_prefix(1);
  for (const UnitName& unit : units_of(kind)) {
    if (rest == unit.suffix) {
      return unit.factor;
    }
  }
  return std::nullopt;
}

// The columns of a header by their names as we compare them.
class ColumnFinder {
 public:
  explicit ColumnFinder(const std::vector<std::string_view>& names) : names_(names) {
    for (const std::string_view name : names) {
      normalised_.push_back(normalised(name));
    }
  }

  // The first column of that name, unless one was found before.
  void find(std::string_view name, UnitKind kind, double default_unit,
            std::optional<CsvColumn>& column) const {
    for (std::size_t i = 0; i < names_.size() && !column; ++i) {
      if (const auto unit = match(normalised_[i], name, kind, default_unit)) {
        column = CsvColumn{i, std::string(trim(names_[i])),
                           *unit > 0 ? std::optional(*unit) : std::nullopt};
      }
    }
  }

  // By the name of the field without its unit, then by the other names that it has.
  void find_sample_field(std::string_view field, std::optional<CsvColumn>& column) const {
    const UnitKind kind = is_size(field)   ? UnitKind::kSize
                          : is_time(field) ? UnitKind::kTime
                                           : UnitKind::kNone;
    const double default_unit = kind == UnitKind::kSize ? 0.0 : 1.0;
    const bool has_unit = kind != UnitKind::kNone;
    find(has_unit ? field.substr(0, field.rfind('_')) : field, kind, default_unit, column);
    for (const OtherName& other : kOtherNames) {
      if (other.field == field) {
        find(other.name, kind, other.default_unit, column);
      }
    }
  }

 private:
  const std::vector<std::string_view>& names_;
  std::vector<std::string> normalised_;
};

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
  const ColumnFinder finder(names);
  for (const KnownName& known : kKnownNames) {
    finder.find(known.name, known.unit, known.default_unit,
                header.fields[static_cast<std::size_t>(known.field)]);
  }
  bool has_memory = header[CsvField::kFootprint].has_value();
  std::size_t place = 0;
  visit_fields<ProcessSample>([&](const auto& field) {
    std::optional<CsvColumn>& column = header.sample_fields[place++];
    finder.find_sample_field(field.name, column);
    has_memory = has_memory || (column && is_size(field.name));
  });
  if (!header[CsvField::kTime] && !header[CsvField::kStep]) {
    return missing_column("time", "t_s, time, timestamp, elapsed or step", line, file);
  }
  if (!has_memory) {
    return missing_column("memory", "rss_bytes, rss_kb, rss_mb, pss_mb, memory_mb or the like",
                          line, file);
  }
  return header;
}

}  // namespace tidemark::recording
