// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "check/spec.h"
#include "check/suppressions.h"
#include "common/result.h"

namespace tidemark::check {

// What a repository wants checked: tidemark.json.
struct CheckConfig {
  std::vector<CheckSpec> checks;
  std::vector<Suppression> suppressions;
};

inline constexpr std::string_view kConfigName = "tidemark.json";

// `over`: settings that count more than those of the file. Errors name the line or the key.
Result<CheckConfig> parse_check_config(std::string_view text, const CheckValues& over = {});
Result<CheckConfig> read_check_config(const std::string& path, const CheckValues& over);

}  // namespace tidemark::check
