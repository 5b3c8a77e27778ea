// SPDX-License-Identifier: Apache-2.0
#include "tracker/run/run_verdict.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>

#include "tracker/causes/signature_facts.h"
#include "tracker/curve/curve_window.h"
#include "tracker/run/judged_tracks.h"
#include "tracker/run/run_tracks.h"

namespace tidemark::tracker {
namespace {

Moment moment_of(const Cell& cell) {
  const auto known = [](double value) {
    return std::isnan(value) ? std::nullopt : std::optional(value);
  };
  return {known(cell.t_s), known(cell.step)};
}

// nullopt: one of the two accounts is missing.
std::optional<GpuGrowth> find_gpu_growth(const RunTracks& run, const JudgedTracks& judged) {
  const JudgedTrack* const whole = judged.tree(run);
  if (whole == nullptr) {
    return std::nullopt;
  }
  const Track& tree = run.tracks[whole->verdict.track];
  GpuGrowth growth;
  growth.counts_all_users = tree.of(Metric::kGpu).empty();
  const Series& driver = tree.of(growth.counts_all_users ? Metric::kGpuDevice : Metric::kGpu);
  const Series& reserved = tree.of(Metric::kTorchReserved);
  if (driver.empty() || reserved.empty()) {
    return std::nullopt;
  }
  // Since the growth began that was found on this curve; else since both are known.
  const Cell& first_both = driver.cells().front().place() > reserved.cells().front().place()
                               ? driver.cells().front()
                               : reserved.cells().front();
  Window window{first_both.place(), driver.cells().back().place()};
  growth.since = moment_of(first_both);
  const bool is_judged = is_gpu(whole->curve.metric);
  const SeriesVerdict& series = whole->verdict.series;
  for (const PatternKind kind : {PatternKind::kLeak, PatternKind::kGrowth}) {
    const Pattern* const pattern = is_judged ? series.find(kind) : nullptr;
    const double from = pattern == nullptr
                            ? window.from
                            : pattern->from.t_s.value_or(pattern->from.step.value_or(window.from));
    if (from > window.from) {
      window.from = from;
      growth.since = pattern->from;
      break;
    }
  }
  const auto by_driver = growth_in(driver, window);
  const auto by_torch = growth_in(reserved, window);
  if (!by_driver || !by_torch) {
    return std::nullopt;
  }
  growth.driver_bytes = *by_driver;
  growth.torch_reserved_bytes = *by_torch;
  growth.torch_allocated_bytes = growth_in(tree.of(Metric::kTorchAllocated), window);
  return growth;
}

constexpr double kNamedFrom = 1.0 / 3.0;
constexpr double kOneHasIt = 0.8;  // of what its role has

const Pattern* growth_pattern(const SeriesVerdict& series) {
  switch (series.verdict) {
    case Verdict::kLeak:
      return series.find(PatternKind::kLeak);
    case Verdict::kGrowing:
      return series.find(PatternKind::kGrowth);
    case Verdict::kWarmup:
      return series.find(PatternKind::kWarmup);
    case Verdict::kSpikes:
    case Verdict::kStable:
      break;
  }
  return nullptr;
}

// Whose growth, or whose spikes, a role or tree shows.
struct Carrier {
  std::size_t judged = 0;  // index into JudgedTracks::tracks
  double share = 0.0;      // of the growth, or of the height of the spikes; at most 1
};

double place_or(const Moment& at, double otherwise) {
  return at.t_s.value_or(at.step.value_or(otherwise));
}

double spike_height(const SeriesVerdict& series) {
  const Pattern* spikes = series.find(PatternKind::kSpikes);
  return spikes == nullptr ? 0.0 : spikes->height_bytes;
}

// What a part grew by in the window. A process that started in it added all that it has, unless
// starts do not count.
double growth_of_part(const JudgedTrack& part, const Window& window, bool starts_count) {
  const std::optional<Levels> levels = levels_in(part.curve.series, window);
  if (!levels) {
    return 0.0;
  }
  const bool started_inside = part.curve.series.cells().front().place() > window.from;
  return starts_count && started_inside ? levels->last_bytes : levels->growth_bytes();
}

// A process where one has most of it, else a role; nullopt when nobody has a third of it, or
// nothing grew.
std::optional<Carrier> find_carrier(const RunTracks& run, const JudgedTracks& judged,
                                    std::size_t where) {
  const JudgedTrack& whole = judged.tracks[where];
  const Track& group = run.tracks[whole.verdict.track];
  const SeriesVerdict& series = whole.verdict.series;
  const bool spikes = series.verdict == Verdict::kSpikes;
  const Pattern* growth = growth_pattern(series);
  if (group.kind == TrackKind::kProcess || group.kind == TrackKind::kShm ||
      (!spikes && growth == nullptr)) {
    return std::nullopt;
  }
  Window window = judged_window(whole);
  if (growth != nullptr) {
    window = {place_or(growth->from, window.from), place_or(growth->to, window.to)};
  }
  const double all = spikes ? spike_height(series) : growth_of_part(whole, window, false);
  if (all <= 0.0) {
    return std::nullopt;
  }
  std::optional<Carrier> process;
  std::optional<Carrier> role;
  for (std::size_t i = 0; i < judged.tracks.size(); ++i) {
    const JudgedTrack& part = judged.tracks[i];
    const Track& track = run.tracks[part.verdict.track];
    const bool is_role = track.kind == TrackKind::kRole && group.kind == TrackKind::kTree;
    if (!is_role && !is_member(track, group)) {
      continue;
    }
    const double own = spikes ? spike_height(part.verdict.series)
                              : growth_of_part(part, window, !whole.verdict.churn_removed);
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

constexpr double kWorthTelling = 0.01;  // of the tree

std::optional<double> value_at_place(const Series& series, double place) {
  const Cell* cell = cell_before(series, place);
  return cell == nullptr ? std::nullopt : std::optional(cell->mean_bytes());
}

bool is_helper(Role role) {
  return role != Role::kTrainer && role != Role::kRank && role != Role::kInference;
}

bool rises(const JudgedTracks& judged, const RunTracks& run, const Track& role) {
  return std::any_of(judged.tracks.begin(), judged.tracks.end(), [&](const JudgedTrack& one) {
    const Track& track = run.tracks[one.verdict.track];
    return track.kind == TrackKind::kRole && track.role == role.role &&
           one.verdict.series.verdict >= Verdict::kGrowing;
  });
}

// Roles of several helper processes that hold a constant amount, as much as it was when there were
// most of them.
std::vector<Overhead> find_overheads(const RunTracks& run, const JudgedTracks& judged) {
  std::vector<Overhead> overheads;
  for (const Track& track : run.tracks) {
    const std::vector<Cell>& rss = track.of(Metric::kRss).cells();
    if (track.kind != TrackKind::kRole || !is_helper(track.role) || track.most_processes < 2 ||
        rss.empty() || rises(judged, run, track)) {
      continue;
    }
    const auto most = std::max_element(rss.begin(), rss.end(), [](const Cell& a, const Cell& b) {
      return a.mean_bytes() < b.mean_bytes();
    });
    if (most->mean_bytes() < kWorthTelling * judged.tree_floor_bytes) {
      continue;
    }
    // Shares are read later than sizes: those of the end of the stretch, before processes go.
    auto last = most;
    while (last + 1 != rss.end() && (last + 1)->mean_bytes() >= 0.9 * most->mean_bytes()) {
      ++last;
    }
    overheads.push_back({track.role, track.most_processes, most->mean_bytes(),
                         value_at_place(track.of(Metric::kFootprint), last->place()),
                         value_at_place(track.of(Metric::kPss), last->place())});
  }
  return overheads;
}

constexpr double kLeakShare = 0.01;       // of the floor of the tree: less of a part is no answer
constexpr double kRisingShare = 0.02;     // the same for what is no leak, as of one curve
constexpr double kEarlyExitShare = 0.05;  // of the run: whoever exits before that ended early

// What a verdict is about, in bytes.
double weight_of(const SeriesVerdict& series) {
  double weight = 0.0;
  bool told = false;
  for (const Pattern& pattern : series.patterns) {
    const bool spikes = pattern.kind == PatternKind::kSpikes;
    if (spikes && series.verdict == Verdict::kSpikes) {
      weight = std::max(weight, pattern.height_bytes);
      told = true;
    } else if (!spikes && series.verdict != Verdict::kSpikes &&
               pattern.kind != PatternKind::kTeardown) {
      weight = std::max(weight, pattern.growth_bytes);
      told = true;
    }
  }
  return told ? weight : series.last_floor_bytes - series.first_floor_bytes;
}

// On equal verdicts the whole answers for its parts; of a tree of one process, the process.
int rank_of(const Track& track, bool alone) {
  switch (track.kind) {
    case TrackKind::kTree:
      return alone ? 3 : 4;
    case TrackKind::kProcess:
      return alone ? 4 : 1;
    case TrackKind::kShm:
      return 3;
    case TrackKind::kRole:
      return 2;
  }
  return 0;
}

class Choice {
 public:
  Choice(const RunTracks& run, const JudgedTracks& judged)
      : run_(run), judged_(judged), tree_(judged.tree(run)) {
    processes_ = std::count_if(run.tracks.begin(), run.tracks.end(), [](const Track& track) {
      return track.kind == TrackKind::kProcess;
    });
  }

  std::size_t best() const {
    std::size_t best = 0;
    for (std::size_t i = 1; i < judged_.tracks.size(); ++i) {
      if (may_answer(judged_.tracks[i]) && (!may_answer(judged_.tracks[best]) || beats(i, best))) {
        best = i;
      }
    }
    return best;
  }

 private:
  bool beats(std::size_t a, std::size_t b) const {
    const auto key = [&](std::size_t i) {
      const JudgedTrack& judged = judged_.tracks[i];
      const SeriesVerdict& series = judged.verdict.series;
      return std::tuple(series.verdict, rank_of(run_.tracks[judged.verdict.track], alone()),
                        weight_of(series));
    };
    return key(a) > key(b);
  }

  bool alone() const { return processes_ <= 1; }

  bool may_answer(const JudgedTrack& judged) const {
    const Track& track = run_.tracks[judged.verdict.track];
    if (track.kind == TrackKind::kTree || tree_ == nullptr) {
      return true;
    }
    const SeriesVerdict& series = judged.verdict.series;
    const bool leak = series.verdict == Verdict::kLeak;
    const double least = (leak ? kLeakShare : kRisingShare) * judged_.tree_floor_bytes;
    if (series.verdict == Verdict::kStable) {
      return alone();
    }
    if (weight_of(series) < least) {
      return false;
    }
    return track.kind != TrackKind::kProcess || process_may_answer(track, judged, leak);
  }

  bool process_may_answer(const Track& track, const JudgedTrack& judged, bool leak) const {
    const Window window = judged_window(*tree_);
    const bool trains = track.role == Role::kTrainer || track.role == Role::kRank;
    const bool ended_early =
        track.exited_s && *track.exited_s < window.to - kEarlyExitShare * (window.to - window.from);
    if (!leak && (!trains || ended_early) && !alone()) {
      return false;  // a worker counts through its role, and who has exited grows no more
    }
    return judged.curve.metric != Metric::kFootprint ||
           !grew_by_touching_shared(track, tree_->curve.series, judged_window(judged));
  }

  const RunTracks& run_;
  const JudgedTracks& judged_;
  const JudgedTrack* tree_;
  std::ptrdiff_t processes_ = 0;
};

std::optional<HeldAs> held_as(const RunTracks& run, const RunVerdict& verdict, const Facts& facts) {
  const TrackVerdict& answer = verdict.answer();
  if (is_gpu(answer.metric)) {
    return std::nullopt;  // the kinds are those of the machine's memory
  }
  const Moves& trainer = facts.trainer;
  const double grown = trainer.footprint_bytes.value_or(0.0);
  if (verdict.verdict == Verdict::kStable || verdict.verdict == Verdict::kSpikes) {
    if (facts.is_much(facts.tree.file_bytes)) {
      return HeldAs::kFileCache;
    }
    const bool seen_often = facts.is_much(facts.tree.rss_bytes) && facts.tree.pss_bytes &&
                            !facts.is_much(facts.tree.pss_bytes);
    return seen_often ? std::optional(HeldAs::kSharedSegment) : std::nullopt;
  }
  if (run.tracks[answer.track].kind == TrackKind::kShm) {
    return HeldAs::kUnheldShm;
  }
  const bool trainer_carries =
      answer.track == facts.trainer_track ||
      (verdict.carrier && verdict.tracks[*verdict.carrier].track == facts.trainer_track);
  if (answer.copy_on_write) {
    return HeldAs::kCopyOnWrite;
  }
  if (!trainer_carries) {
    return facts.processes_keep_coming ? HeldAs::kProcesses : HeldAs::kPrivate;
  }
  if (grown > 0.0 && trainer.swap_bytes.value_or(0.0) >= 0.5 * grown) {
    return HeldAs::kSwap;
  }
  const bool shared = grown > 0.0 && trainer.shmem_bytes.value_or(0.0) >= 0.6 * grown;
  return shared ? HeldAs::kSharedMemory : HeldAs::kPrivate;
}

}  // namespace

std::optional<RunVerdict> judge_run(const RunTracks& run, const Options& options,
                                    std::optional<Metric> metric) {
  JudgedTracks judged = judge_tracks(run, options, metric);
  if (judged.tracks.empty()) {
    return std::nullopt;
  }
  RunVerdict verdict;
  verdict.where = Choice(run, judged).best();
  verdict.verdict = judged.tracks[verdict.where].verdict.series.verdict;
  if (const std::optional<Carrier> carrier = find_carrier(run, judged, verdict.where)) {
    verdict.carrier = carrier->judged;
    verdict.carrier_share = carrier->share;
  }
  verdict.overheads = find_overheads(run, judged);
  const Facts facts = gather_facts(run, judged, verdict.overheads);
  verdict.gpu_growth = find_gpu_growth(run, judged);
  for (JudgedTrack& track : judged.tracks) {
    verdict.tracks.push_back(std::move(track.verdict));
  }
  verdict.held_as = held_as(run, verdict, facts);
  verdict.advice = advice_for(facts);
  return verdict;
}

std::string_view held_as_name(HeldAs held_as) {
  static constexpr std::array<std::string_view, 8> kNames{
      "private", "copy_on_write", "shared_memory", "shared_segment",
      "swap",    "file_cache",    "unheld_shm",    "processes"};
  return kNames[static_cast<std::size_t>(held_as)];
}

}  // namespace tidemark::tracker
