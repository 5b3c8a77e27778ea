// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/proc_statm.h"

#include "common/text.h"
#include "monitor/procfs/kernel_text.h"

namespace tidemark::monitor {

Result<StatmFields> parse_statm(std::string_view text) {
  const auto size = parse_number<std::uint64_t>(take_word(text));
  const auto resident = parse_number<std::uint64_t>(take_word(text));
  const auto shared = parse_number<std::uint64_t>(take_word(text));
  if (!size || !resident || !shared) {
    return Error{Errc::kMalformed, "not a /proc/PID/statm line"};
  }
  return StatmFields{*size, *resident, *shared};
}

}  // namespace tidemark::monitor
