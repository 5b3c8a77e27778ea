// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "check/result.h"
#include "check/spec.h"
#include "check/suppressions.h"

namespace tidemark::check {

// What a check needs to know beside itself.
struct CheckSurroundings {
  std::span<const Suppression> suppressions;
  bool stdout_is_ours = false;
};

// Runs a check, once or as often as it takes, and judges it; updates its baseline and its history.
CheckResult check_one(const CheckSpec& spec, const CheckSurroundings& surroundings);

// "run.tidemark" with "name" in it: "run-name.tidemark".
std::string tagged_output(const std::string& path, std::string_view tag);
// "run.tidemark", then "run-2.tidemark", ...
std::string numbered_output(const std::string& path, std::uint32_t run);

}  // namespace tidemark::check
