// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "dashboard/dashboard_model.h"
#include "tracker/curve/series_verdict.h"

// A verdict in the few words that a line of the screen has room for.
namespace tidemark::dashboard {

// "LEAK", "STABLE", "TOO EARLY", ...
std::string verdict_word(const tracker::SeriesVerdict& reading, tracker::Verdict verdict);
Tone verdict_tone(const tracker::SeriesVerdict& reading, tracker::Verdict verdict);
// "grows by 5.0 MiB/step, 1.5 GiB/min since step 25".
std::string finding_words(const tracker::SeriesVerdict& reading, tracker::Verdict verdict);
// "limit 23.5 GiB in 14 min to 19 min"; "" when nothing is known.
std::string outlook_words(const tracker::SeriesVerdict& reading);
// "+1.47 GiB/min".
std::string rate_words(double bytes_per_s);

}  // namespace tidemark::dashboard
