// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tracker/curve/series_verdict.h"

namespace tidemark::report {

// Which characters a terminal or a log may be given.
enum class Glyphs { kAscii, kUtf8 };

// What the environment says about the encoding of the terminal (LC_ALL, LC_CTYPE, LANG).
Glyphs glyphs_of_locale();

// Floor and ceiling of a curve over time or steps, at most 80 columns wide; below them where
// warm-up, allowance and leak begin or end. Empty when there are too few points to draw.
std::string chart_text(const tracker::SeriesVerdict& reading, Glyphs glyphs);

}  // namespace tidemark::report
