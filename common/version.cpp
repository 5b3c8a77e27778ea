// SPDX-License-Identifier: Apache-2.0
#include "common/version.h"

namespace tidemark {

std::string_view version() { return TIDEMARK_VERSION; }

}  // namespace tidemark
