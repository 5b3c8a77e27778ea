// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace tidemark::tests {

// Runs `body` in a forked child, which then ends through exit(3) or, on request, _exit(2); returns
// what `body` returned. A child that dies returns "killed by signal N".
enum class EndBy { kExit, kUnderscoreExit };
std::string in_child(const std::function<std::string()>& body,
                     EndBy end_by = EndBy::kUnderscoreExit);

}  // namespace tidemark::tests
