// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tidemark {

// Of the tool, "0.1.0".
std::string_view version();

}  // namespace tidemark
