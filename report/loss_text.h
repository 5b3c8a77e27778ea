// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tidemark::report {

// What was not seen, in words: "markers that were overwritten before they were read (4 times)".
// Names that another version of the tool gave in a file stay as they are. Escaped.
std::string loss_text(std::string_view name, std::uint64_t count);

}  // namespace tidemark::report
