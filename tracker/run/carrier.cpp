// SPDX-License-Identifier: Apache-2.0
#include "tracker/run/carrier.h"

#include <algorithm>

#include "tracker/run/group_sharing.h"

namespace tidemark::tracker {
namespace {

constexpr double kNamedFrom = 1.0 / 3.0;
constexpr double kOneHasIt = 0.8;  // of what its role has

const Pattern* growth_pattern(const Reading& reading) {
  switch (reading.verdict) {
    case Verdict::kLeak:
      return reading.find(PatternKind::kLeak);
    case Verdict::kGrowing:
      return reading.find(PatternKind::kGrowth);
    case Verdict::kWarmup:
      return reading.find(PatternKind::kWarmup);
    case Verdict::kSpikes:
    case Verdict::kStable:
      break;
  }
  return nullptr;
}

double place_or(const Moment& at, double otherwise) {
  return at.t_s.value_or(at.step.value_or(otherwise));
}

double spike_height(const Reading& reading) {
  const Pattern* spikes = reading.find(PatternKind::kSpikes);
  return spikes == nullptr ? 0.0 : spikes->height_bytes;
}

// What a part grew by in the window. One that was born in it brought all that it has, unless births
// do not count.
double growth_of_part(const JudgedTrack& part, const Window& window, bool births_count) {
  const std::optional<Levels> levels = levels_in(part.curve.series, window);
  if (!levels) {
    return 0.0;
  }
  const bool born_inside = place_of(part.curve.series.cells().front()) > window.from;
  return births_count && born_inside ? levels->last_bytes : levels->growth_bytes();
}

}  // namespace

std::optional<Carrier> find_carrier(const RunTracks& run, const JudgedTracks& judged,
                                    std::size_t where) {
  const JudgedTrack& whole = judged.tracks[where];
  const Track& group = run.tracks[whole.reading.track];
  const Reading& reading = whole.reading.reading;
  const bool spikes = reading.verdict == Verdict::kSpikes;
  const Pattern* growth = growth_pattern(reading);
  if (group.kind == TrackKind::kProcess || group.kind == TrackKind::kShm ||
      (!spikes && growth == nullptr)) {
    return std::nullopt;
  }
  Window window = judged_window(whole);
  if (growth != nullptr) {
    window = {place_or(growth->from, window.from), place_or(growth->to, window.to)};
  }
  const double all = spikes ? spike_height(reading) : growth_of_part(whole, window, false);
  if (all <= 0.0) {
    return std::nullopt;
  }
  std::optional<Carrier> process;
  std::optional<Carrier> role;
  for (std::size_t i = 0; i < judged.tracks.size(); ++i) {
    const JudgedTrack& part = judged.tracks[i];
    const Track& track = run.tracks[part.reading.track];
    const bool is_role = track.kind == TrackKind::kRole && group.kind == TrackKind::kTree;
    if (!is_role && !is_member(track, group)) {
      continue;
    }
    const double own = spikes ? spike_height(part.reading.reading)
                              : growth_of_part(part, window, !whole.reading.births_taken_out);
    std::optional<Carrier>& best = is_role ? role : process;
    if (own / all > (best ? best->share : 0.0)) {
      best = Carrier{i, own / all};
    }
  }
  const bool one_has_it = process && (!role || process->share >= kOneHasIt * role->share);
  std::optional<Carrier> carrier = one_has_it ? process : role;
  if (!carrier || carrier->share < kNamedFrom) {
    return std::nullopt;
  }
  carrier->share = std::min(carrier->share, 1.0);
  return carrier;
}

}  // namespace tidemark::tracker
