// SPDX-License-Identifier: Apache-2.0
#include "tracker/run/run_verdict.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <tuple>
#include <utility>

#include "tracker/causes/signature_facts.h"
#include "tracker/run/carrier.h"
#include "tracker/run/group_sharing.h"
#include "tracker/run/judged_tracks.h"
#include "tracker/run/overhead.h"

namespace tidemark::tracker {
namespace {

constexpr double kLeakShare = 0.01;    // of the floor of the tree: less of a part is no answer
constexpr double kRisingShare = 0.02;  // the same for what is no leak, as of one curve
constexpr double kEndShare = 0.05;     // of the run: dead before it means that it ended earlier

// What a verdict is about, in bytes.
double weight_of(const Reading& reading) {
  double weight = 0.0;
  bool told = false;
  for (const Pattern& pattern : reading.patterns) {
    const bool spikes = pattern.kind == PatternKind::kSpikes;
    if (spikes && reading.verdict == Verdict::kSpikes) {
      weight = std::max(weight, pattern.height_bytes);
      told = true;
    } else if (!spikes && reading.verdict != Verdict::kSpikes &&
               pattern.kind != PatternKind::kTeardown) {
      weight = std::max(weight, pattern.growth_bytes);
      told = true;
    }
  }
  return told ? weight : reading.last_floor_bytes - reading.first_floor_bytes;
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
      const Reading& reading = judged.reading.reading;
      return std::tuple(reading.verdict, rank_of(run_.tracks[judged.reading.track], alone()),
                        weight_of(reading));
    };
    return key(a) > key(b);
  }

  bool alone() const { return processes_ <= 1; }

  bool may_answer(const JudgedTrack& judged) const {
    const Track& track = run_.tracks[judged.reading.track];
    if (track.kind == TrackKind::kTree || tree_ == nullptr) {
      return true;
    }
    const Reading& reading = judged.reading.reading;
    const bool leak = reading.verdict == Verdict::kLeak;
    const double least = (leak ? kLeakShare : kRisingShare) * judged_.tree_floor_bytes;
    if (reading.verdict == Verdict::kStable) {
      return alone();
    }
    if (weight_of(reading) < least) {
      return false;
    }
    return track.kind != TrackKind::kProcess || process_may_answer(track, judged, leak);
  }

  bool process_may_answer(const Track& track, const JudgedTrack& judged, bool leak) const {
    const Window window = judged_window(*tree_);
    const bool trains = track.role == Role::kTrainer || track.role == Role::kRank;
    const bool ended_early =
        track.died_s && *track.died_s < window.to - kEndShare * (window.to - window.from);
    if (!leak && (!trains || ended_early) && !alone()) {
      return false;  // a worker speaks through its role, and nothing can come of the dead
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
  const TrackReading& answer = verdict.answer();
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
      (verdict.carrier && verdict.readings[*verdict.carrier].track == facts.trainer_track);
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
  verdict.verdict = judged.tracks[verdict.where].reading.reading.verdict;
  if (const std::optional<Carrier> carrier = find_carrier(run, judged, verdict.where)) {
    verdict.carrier = carrier->judged;
    verdict.carrier_share = carrier->share;
  }
  verdict.overheads = find_overheads(run, judged);
  const Facts facts = gather_facts(run, judged, verdict.overheads);
  verdict.gpu_growth = find_gpu_growth(run, judged);
  for (JudgedTrack& track : judged.tracks) {
    verdict.readings.push_back(std::move(track.reading));
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
