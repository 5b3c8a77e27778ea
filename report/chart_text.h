// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tracker/curve/series.h"
#include "tracker/curve/series_verdict.h"

namespace tidemark::report {

// Which characters a terminal or a log may be given.
enum class Glyphs { kAscii, kUtf8 };

// What the environment says about the encoding of the terminal (LC_ALL, LC_CTYPE, LANG).
Glyphs glyphs_of_locale();

// Floor and ceiling of a curve over time or steps, at most 80 columns wide; below them where
// warm-up, allowance and leak begin or end. Empty when there are too few points to draw.
std::string chart_text(const tracker::SeriesVerdict& reading, Glyphs glyphs);

// The shape of a curve in one line of text.

// The highest sample in each of `columns` equal stretches of the run, in bytes. Where steps are
// known, from the first to the last of them: loading and teardown are not part of the shape. A
// stretch without a sample repeats the one before it. Empty when there is nothing to show.
std::vector<double> sparkline_values(const tracker::Series& series, std::size_t columns);

// One character for each, from nothing to the highest: "▁▃▅▇████" or ".-=*####".
std::string sparkline_text(std::span<const double> bytes, Glyphs glyphs);
// From the lowest to the highest, in at most so many columns. Noise of a flat curve stays flat.
std::string change_sparkline(std::span<const double> bytes, std::size_t columns, Glyphs glyphs);

}  // namespace tidemark::report
