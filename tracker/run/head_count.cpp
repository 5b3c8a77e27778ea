// SPDX-License-Identifier: Apache-2.0
#include "tracker/run/head_count.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

#include "tracker/run/births.h"

namespace tidemark::tracker {
namespace {

constexpr double kLongestChangeS = 90.0;  // beyond it, births that go on are changes of their own
constexpr double kTogetherS = 2.0;

struct Move {
  double t_s = 0.0;
  double settled_s = 0.0;
  int by = 0;
};

// The neighbours of one change become one, however many processes it has.
std::vector<HeadChange> join(std::vector<Move> moves, int at_first) {
  std::stable_sort(moves.begin(), moves.end(),
                   [](const Move& a, const Move& b) { return a.t_s < b.t_s; });
  std::vector<HeadChange> changes;
  int count = at_first;
  for (const Move& move : moves) {
    HeadChange* last = changes.empty() ? nullptr : &changes.back();
    if (last == nullptr || move.t_s > std::max(last->settled_s, last->t_s + kTogetherS) ||
        move.t_s > last->t_s + kLongestChangeS) {
      changes.push_back({move.t_s, move.settled_s, count, count});
      last = &changes.back();
    }
    count += move.by;
    last->after = count;
    last->settled_s = std::max(last->settled_s, move.settled_s);
  }
  return changes;
}

struct RoleMoves {
  std::vector<Move> moves;
  int at_first = 0;
};

// Events know also those processes whose curves were too many to keep.
std::optional<RoleMoves> moves_from_events(const RunTracks& run, Role role, double start_s,
                                           std::size_t tracks) {
  RoleMoves found;
  std::size_t spawns = 0;
  for (const RunEvent& event : run.events) {
    const bool spawn = event.kind == RunEvent::Kind::kSpawn;
    if (event.role != role || (!spawn && event.kind != RunEvent::Kind::kExit)) {
      continue;
    }
    spawns += spawn ? 1U : 0U;
    if (spawn && event.t_s <= start_s) {
      ++found.at_first;
    } else {
      found.moves.push_back({event.t_s, event.t_s, spawn ? 1 : -1});
    }
  }
  return spawns > tracks && run.events_dropped == 0 ? std::optional(std::move(found))
                                                    : std::nullopt;
}

RoleMoves moves_from_tracks(const RunTracks& run, Role role, double start_s) {
  RoleMoves found;
  for (const Track& track : run.tracks) {
    if (track.kind != TrackKind::kProcess || track.role != role) {
      continue;
    }
    if (track.born_s <= start_s) {
      ++found.at_first;
    } else {
      found.moves.push_back({track.born_s, settled_after_birth(track), 1});
    }
    if (track.died_s) {
      found.moves.push_back({*track.died_s, *track.died_s, -1});
    }
  }
  return found;
}

double start_of(const RunTracks& run) {
  double start_s = std::numeric_limits<double>::infinity();
  for (const Track& track : run.tracks) {
    if (track.kind == TrackKind::kProcess) {
      start_s = std::min(start_s, track.born_s);
    }
  }
  return start_s;
}

}  // namespace

HeadCounts count_heads(const RunTracks& run) {
  HeadCounts heads;
  const double start_s = start_of(run);
  for (std::size_t i = 0; i < heads.by_role.size(); ++i) {
    const Role role = static_cast<Role>(i);
    const auto tracks = static_cast<std::size_t>(
        std::count_if(run.tracks.begin(), run.tracks.end(), [&](const Track& track) {
          return track.kind == TrackKind::kProcess && track.role == role;
        }));
    std::optional<RoleMoves> moves = moves_from_events(run, role, start_s, tracks);
    if (!moves) {
      moves = moves_from_tracks(run, role, start_s);
    }
    heads.by_role[i] = join(std::move(moves->moves), moves->at_first);
  }
  return heads;
}

bool keeps_growing(const std::vector<HeadChange>& changes, const Window& window) {
  constexpr int kFewest = 4;
  const double span_s = window.to - window.from;
  if (changes.empty() || !(span_s > 0.0)) {
    return false;
  }
  int rises = 0;
  int came = 0;
  int went = 0;
  double first_s = 0.0;
  double last_s = 0.0;
  int most = changes.front().before;
  for (const HeadChange& change : changes) {
    if (change.t_s > window.to) {
      break;
    }
    came += std::max(change.after - change.before, 0);
    went += std::max(change.before - change.after, 0);
    if (change.after > most) {
      first_s = rises == 0 ? change.t_s : first_s;
      last_s = change.t_s;
      most = change.after;
      ++rises;
    }
  }
  return rises >= kFewest && most - changes.front().before >= kFewest && went <= came / 4 &&
         last_s >= window.to - 0.3 * span_s && last_s - first_s >= 0.3 * span_s;
}

}  // namespace tidemark::tracker
