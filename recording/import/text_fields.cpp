// SPDX-License-Identifier: Apache-2.0
#include "recording/import/text_fields.h"

#include <cmath>

#include "common/text.h"

namespace tidemark::recording {

std::optional<std::uint64_t> bytes_of_mib(std::string_view text) {
  constexpr double kMib = 1024.0 * 1024.0;
  constexpr double kMaxMib = 0x1p33;
  const auto value = parse_number<double>(text);
  if (!value || !(*value >= 0.0) || !(*value <= kMaxMib)) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(std::llround(*value * kMib));
}

}  // namespace tidemark::recording
