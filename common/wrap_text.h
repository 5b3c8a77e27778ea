// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tidemark {

// Lines of people's text are no longer than this.
inline constexpr std::size_t kLineColumns = 80;

// Breaks `text` at blanks: "first" stands before its first line, as many blanks before the others.
// Every line ends with '\n'. `text` is escaped already.
std::string wrap_text(std::string_view first, std::string_view text,
                      std::size_t columns = kLineColumns);

}  // namespace tidemark
