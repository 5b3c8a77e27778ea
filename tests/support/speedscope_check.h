// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tidemark::tests {

// What keeps a text from being a file of speedscope's format with sampled profiles: the rules of
// its schema that concern such files, and what the program relies on beside them. "" when nothing
// does.
std::string speedscope_problem(std::string_view text);

}  // namespace tidemark::tests
