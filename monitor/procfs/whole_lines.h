// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "common/result.h"

namespace tidemark::monitor {

// Reads a text file piece by piece, in constant memory, and hands out pieces that consist of whole
// lines (the last may lack its '\n'). Stops early when `take` returns false, and at `limit_bytes`.
Status read_whole_lines(int fd, const std::function<bool(std::string_view)>& take,
                        std::size_t limit_bytes = static_cast<std::size_t>(-1));

}  // namespace tidemark::monitor
