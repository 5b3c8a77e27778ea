// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "tests/unit/tracker/synthetic_run.h"
#include "tracker/run/run_verdict.h"

// What is asked of the verdict of a synthetic run.
namespace tidemark::tests {

inline constexpr double kHour = 3600.0;

inline tracker::RunVerdict judged(const tracker::RunTracks& run, tracker::Options options = {}) {
  std::optional<tracker::RunVerdict> verdict = tracker::judge_run(run, options, std::nullopt);
  EXPECT_TRUE(verdict.has_value());
  return std::move(verdict).value_or(tracker::RunVerdict{});
}

inline const tracker::Track& where(const tracker::RunTracks& run,
                                   const tracker::RunVerdict& verdict) {
  return run.tracks[verdict.answer().track];
}

inline const tracker::Track* carrier(const tracker::RunTracks& run,
                                     const tracker::RunVerdict& verdict) {
  return verdict.carrier ? &run.tracks[verdict.tracks[*verdict.carrier].track] : nullptr;
}

inline std::set<std::string> advised(const tracker::RunVerdict& verdict) {
  std::set<std::string> ids;
  for (const tracker::Advice& advice : verdict.advice) {
    ids.emplace(advice.id);
  }
  return ids;
}

inline const tracker::TrackVerdict* reading_of(const tracker::RunTracks& run,
                                               const tracker::RunVerdict& verdict,
                                               tracker::TrackKind kind, Role role) {
  const auto it = std::find_if(
      verdict.tracks.begin(), verdict.tracks.end(), [&](const tracker::TrackVerdict& reading) {
        const tracker::Track& track = run.tracks[reading.track];
        return track.kind == kind && (kind == tracker::TrackKind::kTree || track.role == role);
      });
  return it == verdict.tracks.end() ? nullptr : &*it;
}

}  // namespace tidemark::tests
