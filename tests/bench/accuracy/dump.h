// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "tests/bench/accuracy/generator.h"

namespace tidemark::bench {

// The first `count` points as CSV on stdout, as `tidemark track` reads it; the truth and the
// reading of these points in words on stderr.
void dump(std::string_view name, const Curve& curve, const tracker::Options& options,
          std::size_t count);

}  // namespace tidemark::bench
