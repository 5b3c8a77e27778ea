// SPDX-License-Identifier: Apache-2.0
#include "cli/watch_options.h"

#include "common/text.h"

namespace tidemark::cli {

Result<monitor::PssMode> parse_pss_mode(std::string_view text) {
  if (text == "off") {
    return monitor::PssMode::kOff;
  }
  if (text == "auto") {
    return monitor::PssMode::kAuto;
  }
  if (text == "always") {
    return monitor::PssMode::kAlways;
  }
  return Error{Errc::kUsage, "--pss is off, auto or always, not '" + escape_text(text) + "'"};
}

}  // namespace tidemark::cli
