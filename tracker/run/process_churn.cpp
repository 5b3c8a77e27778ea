// SPDX-License-Identifier: Apache-2.0
#include "tracker/run/process_churn.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "tracker/curve/curve_window.h"
#include "tracker/run/run_tracks.h"

namespace tidemark::tracker {
namespace {

constexpr double kLongestChangeS = 90.0;  // starts that go on for longer are several changes
constexpr double kTogetherS = 2.0;

struct Move {
  double t_s = 0.0;
  double settled_s = 0.0;
  int by = 0;
};

// The neighbours of one change become one, however many processes it has.
std::vector<ProcessCountChange> join(std::vector<Move> moves, int at_first) {
  std::stable_sort(moves.begin(), moves.end(),
                   [](const Move& a, const Move& b) { return a.t_s < b.t_s; });
  std::vector<ProcessCountChange> changes;
  int count = at_first;
  for (const Move& move : moves) {
    ProcessCountChange* last = changes.empty() ? nullptr : &changes.back();
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
    if (track.started_s <= start_s) {
      ++found.at_first;
    } else {
      found.moves.push_back({track.started_s, settled_after_start(track), 1});
    }
    if (track.exited_s) {
      found.moves.push_back({*track.exited_s, *track.exited_s, -1});
    }
  }
  return found;
}

double start_of(const RunTracks& run) {
  double start_s = std::numeric_limits<double>::infinity();
  for (const Track& track : run.tracks) {
    if (track.kind == TrackKind::kProcess) {
      start_s = std::min(start_s, track.started_s);
    }
  }
  return start_s;
}

}  // namespace

ProcessCounts count_processes(const RunTracks& run) {
  ProcessCounts process_counts;
  const double start_s = start_of(run);
  for (std::size_t i = 0; i < process_counts.by_role.size(); ++i) {
    const Role role = static_cast<Role>(i);
    const auto tracks = static_cast<std::size_t>(
        std::count_if(run.tracks.begin(), run.tracks.end(), [&](const Track& track) {
          return track.kind == TrackKind::kProcess && track.role == role;
        }));
    std::optional<RoleMoves> moves = moves_from_events(run, role, start_s, tracks);
    if (!moves) {
      moves = moves_from_tracks(run, role, start_s);
    }
    process_counts.by_role[i] = join(std::move(moves->moves), moves->at_first);
  }
  return process_counts;
}

bool keeps_growing(const std::vector<ProcessCountChange>& changes, const Window& window) {
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
  for (const ProcessCountChange& change : changes) {
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

namespace {

constexpr double kLongestStartS = 60.0;  // importing torch from a cold disk takes about that
constexpr double kGrownShare = 0.97;
constexpr double kLagS = 5.0;  // until shared pages have been counted again
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::size_t kAround = 3;      // cells on either side that tell how far the curve moved
constexpr std::size_t kFewestLeft = 4;  // one cell of so many must be left

// Starts and exits of processes that cannot be told apart in time.
struct MemberChange {
  double from_s = 0.0;
  double to_s = 0.0;
  std::vector<std::size_t> started;  // indices of members
  std::vector<std::size_t> exited;
};

struct Member {
  const Track* track = nullptr;
  bool from_the_start = false;
  std::optional<double> weight_bytes;  // in the curve of the group
  std::size_t generation = 0;          // the change in which it started; 0: none
};

std::vector<Member> members_of(const RunTracks& run, const Track& group) {
  double start_s = kNever;
  for (const Track& track : run.tracks) {
    if (track.kind == TrackKind::kProcess) {
      start_s = std::min(start_s, track.started_s);
    }
  }
  std::vector<Member> members;
  for (const Track& track : run.tracks) {
    if (is_member(track, group)) {
      members.push_back({&track, track.started_s <= start_s, std::nullopt, 0});
    }
  }
  return members;
}

void join(const MemberChange& next, MemberChange& into) {
  into.to_s = std::max(into.to_s, next.to_s);
  into.started.insert(into.started.end(), next.started.begin(), next.started.end());
  into.exited.insert(into.exited.end(), next.exited.begin(), next.exited.end());
  // A process that started and exited within one change does not count.
  const auto unseen = [&](std::size_t gone) {
    const auto start = std::find(into.started.begin(), into.started.end(), gone);
    const bool found = start != into.started.end();
    if (found) {
      into.started.erase(start);
    }
    return found;
  };
  into.exited.erase(std::remove_if(into.exited.begin(), into.exited.end(), unseen),
                    into.exited.end());
}

std::vector<MemberChange> changes_of(const std::vector<Member>& members, double end) {
  struct Event {
    double from_s = 0.0;
    double to_s = 0.0;
    std::size_t member = 0;
    bool is_start = false;
  };
  std::vector<Event> moves;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Track& track = *members[i].track;
    if (!members[i].from_the_start) {
      moves.push_back({track.started_s, settled_after_start(track) + kLagS, i, true});
    }
    if (track.exited_s && *track.exited_s <= end) {
      moves.push_back({*track.exited_s, *track.exited_s + kLagS, i, false});
    }
  }
  std::stable_sort(moves.begin(), moves.end(),
                   [](const Event& a, const Event& b) { return a.from_s < b.from_s; });
  std::vector<MemberChange> changes;
  for (const Event& move : moves) {
    MemberChange one{move.from_s, move.to_s, {}, {}};
    (move.is_start ? one.started : one.exited).push_back(move.member);
    if (changes.empty() || move.from_s > changes.back().to_s) {
      changes.push_back(std::move(one));
    } else {
      join(one, changes.back());
    }
  }
  return changes;
}

double mean_floor(const std::vector<Cell>& cells, std::size_t from, std::size_t to) {
  const double sum =
      std::accumulate(cells.begin() + static_cast<std::ptrdiff_t>(from),
                      cells.begin() + static_cast<std::ptrdiff_t>(to), 0.0,
                      [](double so_far, const Cell& cell) { return so_far + cell.min_bytes; });
  return sum / static_cast<double>(to - from);
}

// The size of a process once its start is over, as it sees it.
double start_bytes(const Track& track) {
  const Series* curve = size_curve(track);
  return curve == nullptr
             ? 1.0
             : std::max(cell_before(*curve, settled_after_start(track))->min_bytes, 1.0);
}

// What a process had at first, as a share of what it had at last.
double share_at_first(const Track& track) {
  const Series* curve = size_curve(track);
  const std::optional<Levels> levels = curve == nullptr ? std::nullopt : levels_in(*curve, {});
  return levels && levels->last_bytes > 0.0
             ? std::clamp(levels->first_bytes / levels->last_bytes, 0.0, 1.0)
             : 1.0;
}

class ChurnRemoval {
 public:
  ChurnRemoval(const RunTracks& run, const Track& group, const Series& curve)
      : cells_(curve.cells()),
        members_(members_of(run, group)),
        changes_(changes_of(members_, cells_.back().place())) {
    alive_ = static_cast<std::size_t>(
        std::count_if(members_.begin(), members_.end(),
                      [](const Member& member) { return member.from_the_start; }));
    if (alive_ == 0) {
      level_bytes_ = 0.0;
    }
  }

  std::optional<Series> result() {
    if (changes_.empty()) {
      return std::nullopt;
    }
    std::optional<MemberChange> open;  // what happened since the curve was last seen
    for (std::size_t i = 0; i < changes_.size(); ++i) {
      if (open) {
        join(changes_[i], *open);
      } else {
        open = changes_[i];
      }
      const MemberChange& change = *open;
      keep_until(change.from_s);
      while (next_ < cells_.size() && cells_[next_].place() <= change.to_s) {
        ++next_;
      }
      const auto before_next_change = [&](const Cell& cell) {
        return i + 1 == changes_.size() || cell.place() < changes_[i + 1].from_s;
      };
      std::size_t end = next_;
      while (end < std::min(next_ + kAround, cells_.size()) && before_next_change(cells_[end])) {
        ++end;
      }
      if (end == next_ && alive_ + change.started.size() > change.exited.size()) {
        continue;
      }
      // A group without processes has no samples and no memory.
      const double after = end > next_ ? mean_floor(cells_, next_, end) : 0.0;
      attribute(change, i + 1, after - level_bytes_.value_or(after));
      level_bytes_ = after;
      alive_ += change.started.size() - change.exited.size();
      open.reset();
    }
    keep_until(kNever);
    return kept_.size() * kFewestLeft < cells_.size() ? std::nullopt : std::optional(rebuilt());
  }

 private:
  struct Kept {
    std::size_t cell = 0;
    double weight_bytes = 0.0;  // of the processes that started
  };

  void keep_until(double t_s) {
    const std::size_t first = next_;
    // A merged cell that reaches beyond t_s is part of the change.
    while (next_ < cells_.size() && cells_[next_].place() < t_s &&
           (next_ + 1 == cells_.size() || cells_[next_].count == 1 ||
            cells_[next_ + 1].place() <= t_s)) {
      kept_.push_back({next_, alive_bytes_});
      ++next_;
    }
    if (next_ > first) {
      level_bytes_ = mean_floor(cells_, next_ - std::min(next_ - first, kAround), next_);
    }
  }

  // Splits what the curve moved by in this change between the processes that started and exited.
  void attribute(const MemberChange& change, std::size_t generation, double moved) {
    double taken = 0.0;
    for (const std::size_t gone : change.exited) {
      taken += members_[gone].weight_bytes.value_or(0.0);
    }
    double of_predecessors = 0.0;
    std::vector<std::size_t> unmatched;
    for (const std::size_t newcomer : change.started) {
      members_[newcomer].generation = generation;
      generations_[generation].push_back(newcomer);
      members_[newcomer].weight_bytes = weight_of_predecessor(change, newcomer);
      of_predecessors += members_[newcomer].weight_bytes.value_or(0.0);
      if (!members_[newcomer].weight_bytes) {
        unmatched.push_back(newcomer);
      }
    }
    const double unexplained = moved + taken - of_predecessors;
    double unmatched_bytes = 0.0;
    for (const std::size_t newcomer : unmatched) {
      unmatched_bytes += start_bytes(*members_[newcomer].track);
    }
    for (const std::size_t newcomer : unmatched) {
      members_[newcomer].weight_bytes =
          std::max(unexplained, 0.0) * start_bytes(*members_[newcomer].track) / unmatched_bytes;
    }
    if (unmatched.empty() && unexplained < 0.0) {
      learn_from_exit(change, -unexplained);
    }
    alive_bytes_ +=
        of_predecessors + (unmatched.empty() ? 0.0 : std::max(unexplained, 0.0)) - taken;
    if (change.started.empty() && unexplained > taken / 4.0) {
      assign_shared_pages(change, unexplained);
    }
  }

  // Of workers that are replaced, the new ones add, in proportion to their size, what the old ones
  // added when they started: so what the old ones had grown by counts as given back.
  std::optional<double> weight_of_predecessor(const MemberChange& change,
                                              std::size_t newcomer) const {
    double weight = 0.0;
    double size = 0.0;
    for (const std::size_t gone : change.exited) {
      const Member& member = members_[gone];
      if (member.track->role == members_[newcomer].track->role && member.weight_bytes) {
        weight += *member.weight_bytes;
        size += start_bytes(*member.track);
      }
    }
    return size > 0.0 ? std::optional(weight / size * start_bytes(*members_[newcomer].track))
                      : std::nullopt;
  }

  // The start of the processes that are as old as the run was not seen; their exit tells what they
  // add to the curve.
  void learn_from_exit(const MemberChange& change, double fallen) {
    double first_share = 0.0;
    std::size_t count = 0;
    for (const std::size_t gone : change.exited) {
      if (members_[gone].from_the_start) {
        first_share += share_at_first(*members_[gone].track);
        ++count;
      }
    }
    if (count == 0) {
      return;
    }
    for (Kept& kept : kept_) {
      kept.weight_bytes += fallen * first_share / static_cast<double>(count);
    }
  }

  // Pages that the exited processes shared with those of their generation now count for the rest of
  // it alone.
  void assign_shared_pages(const MemberChange& change, double left) {
    std::set<std::size_t> sharers;
    for (const std::size_t gone : change.exited) {
      for (const std::size_t sibling : generations_[members_[gone].generation]) {
        if (members_[sibling].track->exited_s.value_or(kNever) > change.to_s) {
          sharers.insert(sibling);
        }
      }
    }
    for (const std::size_t sharer : sharers) {
      *members_[sharer].weight_bytes += left / static_cast<double>(sharers.size());
    }
    alive_bytes_ += sharers.empty() ? 0.0 : left;
  }

  Series rebuilt() const {
    Series series(std::max(2 * kept_.size(), Series::kDefaultCells));
    for (const Kept& kept : kept_) {
      const Cell& cell = cells_[kept.cell];
      const double by = alive_bytes_ - kept.weight_bytes;
      series.add(cell.t_s, cell.step, std::max(cell.min_bytes + by, 0.0));
      if (cell.count > 1) {
        series.add(cell.t_s, cell.step, std::max(cell.max_bytes + by, 0.0));
      }
    }
    return series;
  }

  const std::vector<Cell>& cells_;
  std::vector<Member> members_;
  std::vector<MemberChange> changes_;
  // Members, by the change in which they started.
  std::map<std::size_t, std::vector<std::size_t>> generations_;
  std::vector<Kept> kept_;
  std::size_t next_ = 0;
  std::size_t alive_ = 0;
  double alive_bytes_ = 0.0;           // of the processes that started and are still there
  std::optional<double> level_bytes_;  // of the curve, last seen between two changes
};

}  // namespace

double settled_after_start(const Track& process) {
  const Series* curve = size_curve(process);
  if (curve == nullptr) {
    return process.started_s;
  }
  const double grown_bytes = cell_before(*curve, process.started_s + kLongestStartS)->min_bytes;
  for (const Cell& cell : curve->cells()) {
    if (cell.max_bytes >= kGrownShare * grown_bytes) {
      return std::max(cell.place(), process.started_s);
    }
  }
  return process.started_s;
}

std::optional<Series> without_process_churn(const RunTracks& run, const Track& group,
                                            const Series& curve) {
  return curve.empty() ? std::nullopt : ChurnRemoval(run, group, curve).result();
}

}  // namespace tidemark::tracker
