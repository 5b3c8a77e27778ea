// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tidemark::tests {

// Where the build put the tool and the victims; for targets that tidemark_add_test() made.
inline std::string tool_path() { return TIDEMARK_BINARY_DIR "/bin/tidemark"; }
inline std::string victim_path(const std::string& name) {
  return TIDEMARK_BINARY_DIR "/tests/programs/" + name;
}

}  // namespace tidemark::tests
