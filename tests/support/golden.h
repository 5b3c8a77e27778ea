// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tidemark::tests {

// "" when `text` is what tests/golden/NAME holds, else the first line that differs. With
// TIDEMARK_UPDATE_GOLDEN=1 the file is rewritten, and the test fails once so that somebody reads
// it.
std::string difference_from_golden(const std::string& name, const std::string& text);

}  // namespace tidemark::tests
