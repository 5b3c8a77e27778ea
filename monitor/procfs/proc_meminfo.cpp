// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/proc_meminfo.h"

#include <array>

#include "common/text.h"
#include "monitor/procfs/kernel_text.h"

namespace tidemark::monitor {
namespace {

struct MeminfoLine {
  std::string_view key;
  std::optional<std::uint64_t> MeminfoFields::*field;
};

constexpr std::array<MeminfoLine, 5> kMeminfoLines{{
    {"MemTotal", &MeminfoFields::total_bytes},
    {"MemAvailable", &MeminfoFields::available_bytes},
    {"SwapTotal", &MeminfoFields::swap_total_bytes},
    {"SwapFree", &MeminfoFields::swap_free_bytes},
    {"Shmem", &MeminfoFields::shmem_bytes},
}};

std::optional<double> avg10(std::string_view line) {
  constexpr std::string_view kKey = "avg10=";
  const std::string_view word = take_word(line);
  const auto percent =
      word.starts_with(kKey) ? parse_number<double>(word.substr(kKey.size())) : std::nullopt;
  return percent && *percent >= 0.0 && *percent <= 100.0 ? percent : std::nullopt;
}

}  // namespace

MeminfoFields parse_meminfo(std::string_view text) {
  MeminfoFields fields;
  std::string_view line;
  while (take_line(text, line)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) {
      continue;
    }
    for (const MeminfoLine& known : kMeminfoLines) {
      if (line.substr(0, colon) == known.key) {
        fields.*known.field = kib_field_bytes(line.substr(colon + 1));
      }
    }
  }
  return fields;
}

PressureFields parse_pressure(std::string_view text) {
  PressureFields fields;
  std::string_view line;
  while (take_line(text, line)) {
    const std::string_view kind = take_word(line);
    if (kind == "some") {
      fields.some_avg10 = avg10(line);
    } else if (kind == "full") {
      fields.full_avg10 = avg10(line);
    }
  }
  return fields;
}

}  // namespace tidemark::monitor
