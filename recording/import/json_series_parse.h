// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace tidemark::recording {

// One series of the file, as numbers; what is not a number is nullopt.
struct JsonSeries {
  std::string id;
  bool is_steps = false;
  std::vector<std::optional<double>> x;        // seconds or steps
  std::vector<std::optional<double>> y_bytes;  // as many as x
  std::string metric;                          // in words
};

// `file` is its name in errors. Nothing of the JSON library gets out of the .cpp.
Result<std::vector<JsonSeries>> parse_json_series(std::string_view text, const std::string& file);

}  // namespace tidemark::recording
