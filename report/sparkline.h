// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "report/chart_text.h"
#include "tracker/curve/series.h"

namespace tidemark::report {

// The shape of a curve in one line of text.

// The highest sample in each of `columns` equal stretches of the run, in bytes. Where steps are
// known, from the first to the last of them: loading and teardown are not part of the shape. A
// stretch without a sample repeats the one before it. Empty when there is nothing to show.
std::vector<double> sparkline_values(const tracker::Series& series, std::size_t columns);

// One character for each, from nothing to the highest: "▁▃▅▇████" or ".-=*####".
std::string sparkline_text(std::span<const double> bytes, Glyphs glyphs);

}  // namespace tidemark::report
