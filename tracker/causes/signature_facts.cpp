// SPDX-License-Identifier: Apache-2.0
#include "tracker/causes/signature_facts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/text.h"
#include "tracker/curve/curve_window.h"
#include "tracker/run/judged_tracks.h"
#include "tracker/run/run_tracks.h"
#include "tracker/run/run_verdict.h"

namespace tidemark::tracker {
namespace {

struct NamePart {
  std::string_view part;
  PhaseKind kind;
};

// The first that matches: "validation_metrics" is an evaluation, "save_log" a checkpoint.
constexpr std::array<NamePart, 14> kNameParts{{{"eval", PhaseKind::kEval},
                                               {"valid", PhaseKind::kEval},
                                               {"test", PhaseKind::kEval},
                                               {"checkpoint", PhaseKind::kCheckpoint},
                                               {"ckpt", PhaseKind::kCheckpoint},
                                               {"save", PhaseKind::kCheckpoint},
                                               {"profil", PhaseKind::kProfile},
                                               {"token", PhaseKind::kTokenize},
                                               {"export", PhaseKind::kExport},
                                               {"jit", PhaseKind::kExport},
                                               {"trace", PhaseKind::kExport},
                                               {"logging", PhaseKind::kLogging},
                                               {"log_", PhaseKind::kLogging},
                                               {"metric", PhaseKind::kLogging}}};

// Where a curve stood when a phase began, at most while it lasted, and right after it.
struct Passage {
  double before_bytes = 0.0;
  double peak_bytes = 0.0;
  double after_bytes = 0.0;
};

std::optional<Passage> passage_through(const Series& series, const Phase& phase) {
  const Cell* before = cell_before(series, phase.from_s);
  const Cell* after = cell_after(series, phase.to_s);
  if (before == nullptr || after == nullptr || after < before) {
    return std::nullopt;
  }
  Passage passage{before->min_bytes, before->min_bytes, after->min_bytes};
  for (const Cell* cell = before; cell <= after; ++cell) {
    passage.peak_bytes = std::max(passage.peak_bytes, cell->max_bytes);
  }
  return passage;
}

constexpr double kStartShare = 0.2;  // of a run: until then everything fills
constexpr double kFirstCompilationS = 600.0;
constexpr double kOutlivedS = 60.0;
constexpr double kStaysS = 30.0;
constexpr std::ptrdiff_t kFewestThatStay = 3;
constexpr std::uint32_t kPool = 4;  // compile workers that are worth a word

const JudgedTrack* judged_of(const JudgedTracks& judged, std::size_t track) {
  const auto it = std::find_if(judged.tracks.begin(), judged.tracks.end(),
                               [&](const JudgedTrack& one) { return one.verdict.track == track; });
  return it == judged.tracks.end() ? nullptr : &*it;
}

// The process that trains, see Facts::trainer_track.
const JudgedTrack& trainer_of(const RunTracks& run, const JudgedTracks& judged) {
  const auto key = [&](const JudgedTrack& one) {
    const Track& track = run.tracks[one.verdict.track];
    const bool process = track.kind == TrackKind::kProcess;
    const int standing = !process                       ? 0
                         : track.role == Role::kTrainer ? 3
                         : track.role == Role::kRank    ? 2
                                                        : 1;
    return std::pair(standing, one.verdict.series.max_bytes);
  };
  return *std::max_element(
      judged.tracks.begin(), judged.tracks.end(),
      [&](const JudgedTrack& a, const JudgedTrack& b) { return key(a) < key(b); });
}

Window window_of(const Pattern& pattern, const Window& otherwise) {
  return {pattern.from.t_s.value_or(pattern.from.step.value_or(otherwise.from)),
          pattern.to.t_s.value_or(pattern.to.step.value_or(otherwise.to))};
}

Moves moves_of(const Track& track, const Window& window) {
  return {growth_in(track.of(Metric::kFootprint), window),
          growth_in(track.of(Metric::kRss), window),
          growth_in(track.of(Metric::kPss), window),
          growth_in(track.of(Metric::kRssFile), window),
          growth_in(track.of(Metric::kRssShmem), window),
          growth_in(track.of(Metric::kSwap), window),
          growth_in(track.of(Metric::kGpu), window)};
}

// Sums that nobody recorded, from the processes that were there all the time.
std::optional<double> growth_of_members(const RunTracks& run, Metric metric, const Window& window,
                                        std::optional<Role> role) {
  std::optional<double> sum;
  for (const Track& track : run.tracks) {
    const bool stayed =
        track.started_s <= window.from && track.exited_s.value_or(window.to) >= window.to;
    if (track.kind != TrackKind::kProcess || !stayed || (role && track.role != *role)) {
      continue;
    }
    if (const std::optional<double> growth = growth_in(track.of(metric), window)) {
      sum = sum.value_or(0.0) + *growth;
    }
  }
  return sum;
}

// Advice is about the memory of the machine, also where the memory of its GPU was judged.
double host_floor(const RunTracks& run, const JudgedTracks& judged) {
  const JudgedTrack& whole = judged.tracks.front();
  const Series* host =
      is_gpu(whole.curve.metric) ? size_curve(run.tracks[whole.verdict.track]) : nullptr;
  return host == nullptr ? judged.tree_floor_bytes : levels_in(*host, {})->last_bytes;
}

bool anyone_came_or_went(const ProcessCounts& process_counts, const Window& window) {
  return std::any_of(
      process_counts.by_role.begin(), process_counts.by_role.end(), [&](const auto& changes) {
        return std::any_of(changes.begin(), changes.end(), [&](const ProcessCountChange& change) {
          return change.settled_s >= window.from && change.t_s <= window.to;
        });
      });
}

void add_trainer(const RunTracks& run, const JudgedTracks& judged, Facts& facts) {
  const JudgedTrack& trainer = trainer_of(run, judged);
  const Track& track = run.tracks[trainer.verdict.track];
  const SeriesVerdict& series = trainer.verdict.series;
  facts.trainer_track = trainer.verdict.track;
  facts.trainer_verdict = series.verdict;
  facts.trainer_drifts = series.find(PatternKind::kDrift) != nullptr;
  Window window = judged_window(trainer);
  const Pattern* growth =
      series.find({PatternKind::kLeak, PatternKind::kGrowth, PatternKind::kWarmup});
  if (growth != nullptr) {
    facts.trainer_leak_shape = growth->shape;
    window = window_of(*growth, window);
    facts.trainer_form = form_of(trainer.curve.series, window);
  } else {
    window.from += kStartShare * (window.to - window.from);
  }
  facts.trainer = moves_of(track, window);
  if (track.first_slack_bytes && facts.trainer.footprint_bytes.value_or(0.0) > 0.0) {
    facts.slack_share =
        (*track.last_slack_bytes - *track.first_slack_bytes) / *facts.trainer.footprint_bytes;
  }
  add_ledger_facts(ledger_facts(run.ledgers, &track.key), facts);
  if (const InterpreterState* const interpreter = run.interpreters.of(track.key)) {
    facts.interpreter = *interpreter;
  }
  facts.torch_reserved_gpu_bytes = growth_in(track.of(Metric::kTorchReserved), window);
  if (!facts.trainer.footprint_bytes) {
    facts.trainer.footprint_bytes = growth_in(trainer.curve.series, window);
  }
  const Pattern* rate = growth != nullptr ? growth : series.find(PatternKind::kDrift);
  if (rate != nullptr && rate->rate.bytes_per_step) {
    const GrowthRate& by = rate->rate;
    facts.bytes_per_step = by.bytes_per_step;
    if (by.low_bytes_per_step && by.high_bytes_per_step && *by.bytes_per_step > 0.0 &&
        rate->kind != PatternKind::kWarmup) {
      facts.rate_spread = (*by.high_bytes_per_step - *by.low_bytes_per_step) / *by.bytes_per_step;
    }
  }
}

std::optional<bool> about(std::optional<double> length, std::optional<double> epoch,
                          double within) {
  if (!length || !epoch || *epoch <= 0.0) {
    return std::nullopt;
  }
  return std::abs(*length / *epoch - 1.0) <= within;
}

std::optional<double> distance(std::optional<double> from, std::optional<double> to) {
  return from && to ? std::optional(*to - *from) : std::nullopt;
}

void add_warmup(const RunTracks& run, const JudgedTrack& trainer, Facts& facts) {
  const Pattern* warmup = trainer.verdict.series.find(PatternKind::kWarmup);
  if (warmup == nullptr) {
    return;
  }
  facts.warmup_s = distance(warmup->from.t_s, warmup->to.t_s);
  facts.warmup_steps = distance(warmup->from.step, warmup->to.step);
  facts.ended_with_epoch = facts.warmup_steps && run.epoch_steps
                               ? about(facts.warmup_steps, run.epoch_steps, 0.25)
                               : about(facts.warmup_s, run.epoch_seconds, 0.25);
}

// One rise, and the steps had only just begun: those of the job, not those that we saw.
void add_first_step(const RunTracks& run, const JudgedTrack& trainer, Facts& facts) {
  constexpr double kJustBegun = 3.0;
  if (run.steps_at_start.value_or(0.0) > kJustBegun) {
    return;
  }
  const std::vector<Cell>& cells = trainer.curve.series.cells();
  const auto first = std::find_if(cells.begin(), cells.end(),
                                  [](const Cell& cell) { return !std::isnan(cell.step); });
  const Window window = judged_window(trainer);
  const std::optional<Moment> rise = largest_rise(trainer.curve.series, window);
  if (first != cells.end() && rise && rise->step) {
    facts.jumped_at_first_step = *rise->step <= first->step + kJustBegun &&
                                 form_of(trainer.curve.series, window) == GrowthForm::kOneJump;
  }
}

void add_teeth(const RunTracks& run, const JudgedTrack& trainer, Facts& facts) {
  const Pattern* spikes = trainer.verdict.series.find(PatternKind::kSpikes);
  if (spikes == nullptr || !is_sawtooth(trainer.curve.series, *spikes)) {
    return;
  }
  facts.sawtooth = true;
  facts.tooth_s = spikes->period_s;
  facts.tooth_steps = spikes->period_steps;
  facts.tooth_is_epoch = facts.tooth_steps && run.epoch_steps
                             ? about(facts.tooth_steps, run.epoch_steps, 0.1)
                             : about(facts.tooth_s, run.epoch_seconds, 0.1);
}

void add_phases(const RunTracks& run, const JudgedTrack& trainer, Facts& facts) {
  const std::vector<Phase> phases = phases_of(run.events);
  const Series& gpu = run.tracks[trainer.verdict.track].of(Metric::kGpu);
  const double much = 0.01 * facts.tree_floor_bytes;
  const double much_gpu = gpu.empty() ? 0.0 : 0.01 * levels_in(gpu, {})->max_bytes;
  for (std::size_t i = 0; i < kPhaseKindCount; ++i) {
    const auto kind = static_cast<PhaseKind>(i);
    facts.trainer_in_phases[i] = growth_in_phases(trainer.curve.series, phases, kind, much);
    facts.gpu_in_phases[i] = growth_in_phases(gpu, phases, kind, much_gpu);
  }
}

// A loader that is made for an evaluation, and stays.
bool come_at_evals(const RunTracks& run, const std::vector<ProcessCountChange>& workers) {
  const std::vector<Phase> phases = phases_of(run.events);
  int rises = 0;
  for (const ProcessCountChange& change : workers) {
    const bool in_eval = std::any_of(phases.begin(), phases.end(), [&](const Phase& phase) {
      return phase.kind == PhaseKind::kEval && change.t_s >= phase.from_s &&
             change.t_s <= phase.to_s;
    });
    rises += in_eval && change.after > change.before ? 1 : 0;
  }
  return rises >= 2 && workers.back().after - workers.front().before >= rises;
}

std::uint32_t most_of(const RunTracks& run, Role role) {
  std::uint32_t most = 0;
  std::uint32_t processes = 0;
  for (const Track& track : run.tracks) {
    if (track.role == role && track.kind == TrackKind::kRole) {
      most = std::max(most, track.most_processes);
    }
    processes += track.role == role && track.kind == TrackKind::kProcess ? 1U : 0U;
  }
  return most > 0 ? most : processes;
}

bool pool_returned(const std::vector<ProcessCountChange>& changes) {
  int most = changes.empty() ? 0 : changes.front().before;
  bool quit = false;
  for (const ProcessCountChange& change : changes) {
    if (quit && 2 * change.after > most && most >= static_cast<int>(kPool)) {
      return true;
    }
    most = std::max(most, change.after);
    quit = quit || 2 * change.after <= most;
  }
  return false;
}

// Workers that lived on when the last process that trains had ended.
std::uint32_t outliving(const RunTracks& run) {
  double ended_s = 0.0;
  bool any = false;
  for (const Track& track : run.tracks) {
    if (track.kind == TrackKind::kProcess &&
        (track.role == Role::kTrainer || track.role == Role::kRank)) {
      any = true;
      ended_s = std::max(ended_s, track.exited_s.value_or(std::numeric_limits<double>::infinity()));
    }
  }
  const auto lives_on = [&](const Track& track) {
    const Series& rss =
        track.of(track.of(Metric::kRss).empty() ? Metric::kFootprint : Metric::kRss);
    const bool worker = track.role == Role::kDataloaderWorker || track.role == Role::kCompileWorker;
    return track.kind == TrackKind::kProcess && worker && !rss.empty() &&
           rss.cells().back().place() >= ended_s + kOutlivedS;
  };
  return any ? static_cast<std::uint32_t>(
                   std::count_if(run.tracks.begin(), run.tracks.end(), lives_on))
             : 0U;
}

// Compilers and other short-lived helpers come in numbers too, but each is gone soon.
bool newcomers_stay(const RunTracks& run, Role role, const Window& window) {
  const auto stays = std::count_if(run.tracks.begin(), run.tracks.end(), [&](const Track& track) {
    return track.kind == TrackKind::kProcess && track.role == role &&
           track.started_s > window.from && track.started_s <= window.to - kStaysS &&
           track.exited_s.value_or(window.to) >= window.to;
  });
  return stays >= kFewestThatStay;
}

void add_processes(const RunTracks& run, const JudgedTracks& judged, const Window& window,
                   Facts& facts) {
  const ProcessCounts& process_counts = judged.process_counts;
  facts.ranks = most_of(run, Role::kRank);
  facts.dataloader_workers_most = most_of(run, Role::kDataloaderWorker);
  facts.compile_workers_most = most_of(run, Role::kCompileWorker);
  facts.shm_managers_most = most_of(run, Role::kShmManager);
  const std::vector<ProcessCountChange>& compile = process_counts.of(Role::kCompileWorker);
  for (const ProcessCountChange& change : compile) {
    const bool late = change.t_s > window.from + kFirstCompilationS;
    facts.compile_bursts += late && change.after > change.before ? 1U : 0U;
  }
  facts.compile_pool_returned = pool_returned(compile);
  for (std::size_t i = 0; i < process_counts.by_role.size(); ++i) {
    facts.processes_keep_coming |= keeps_growing(process_counts.by_role[i], window) &&
                                   newcomers_stay(run, static_cast<Role>(i), window);
  }
  const std::vector<ProcessCountChange>& workers = process_counts.of(Role::kDataloaderWorker);
  facts.workers_come_at_evals = !workers.empty() && come_at_evals(run, workers);
  facts.workers_outliving_trainer = outliving(run);
}

bool names_a_tokenizer(std::string_view comm) {
  return to_lower(comm).find("token") != std::string::npos;
}

void add_others(const RunTracks& run, const JudgedTracks& judged, Facts& facts) {
  for (const JudgedTrack& one : judged.tracks) {
    const Track& track = run.tracks[one.verdict.track];
    const SeriesVerdict& series = one.verdict.series;
    const bool much = facts.is_much(series.last_floor_bytes - series.first_floor_bytes);
    if (track.kind == TrackKind::kShm) {
      facts.unheld_shm_grows |= much;
    } else if (track.kind == TrackKind::kProcess && names_a_tokenizer(track.comm)) {
      facts.tokenizer_process_grows |= much && series.verdict >= Verdict::kGrowing;
    }
  }
  facts.gpu_used = std::any_of(run.tracks.begin(), run.tracks.end(), [](const Track& track) {
    const std::optional<Levels> gpu = levels_in(track.of(Metric::kGpu), {});
    return gpu && gpu->max_bytes > 0.0;
  });
}

}  // namespace

PhaseKind phase_kind(std::string_view name) {
  const std::string lower = to_lower(name);
  if (lower == "val" || lower == "log") {
    return lower == "val" ? PhaseKind::kEval : PhaseKind::kLogging;
  }
  const auto* const match = std::find_if(
      kNameParts.begin(), kNameParts.end(),
      [&](const NamePart& entry) { return lower.find(entry.part) != std::string::npos; });
  return match == kNameParts.end() ? PhaseKind::kOther : match->kind;
}

std::vector<Phase> phases_of(const std::vector<RunEvent>& events) {
  std::vector<Phase> phases;
  std::map<std::string_view, double> open;
  for (const RunEvent& event : events) {
    if (event.kind == RunEvent::Kind::kPhaseBegin) {
      open[event.name] = event.t_s;
    } else if (event.kind == RunEvent::Kind::kPhaseEnd) {
      const auto begun = open.find(event.name);
      if (begun != open.end()) {
        phases.push_back({phase_kind(event.name), begun->second, event.t_s});
        open.erase(begun);
      }
    }
  }
  std::stable_sort(phases.begin(), phases.end(),
                   [](const Phase& a, const Phase& b) { return a.from_s < b.from_s; });
  return phases;
}

PhaseGrowth growth_in_phases(const Series& series, const std::vector<Phase>& phases, PhaseKind kind,
                             double threshold_bytes) {
  PhaseGrowth growth;
  std::optional<Passage> last;
  const auto close_gap = [&](double level_bytes) {
    growth.outside_bytes += std::max(level_bytes - last->after_bytes, 0.0);
    const double rise = last->peak_bytes - last->before_bytes;
    if (rise > threshold_bytes) {
      const bool kept = level_bytes > last->before_bytes + rise / 2.0;
      ++(kept ? growth.kept : growth.released);
    }
  };
  for (const Phase& phase : phases) {
    const std::optional<Passage> passage =
        phase.kind == kind ? passage_through(series, phase) : std::nullopt;
    if (!passage) {
      continue;
    }
    if (last) {
      close_gap(passage->before_bytes);
    }
    ++growth.phases;
    growth.rising += passage->peak_bytes - passage->before_bytes > threshold_bytes ? 1U : 0U;
    growth.released += passage->before_bytes - passage->after_bytes > threshold_bytes ? 1U : 0U;
    growth.inside_bytes += passage->peak_bytes - passage->before_bytes;
    last = passage;
  }
  if (last) {
    close_gap(series.cells().back().min_bytes);
  }
  return growth;
}

void add_ledger_facts(const LedgerFacts& ledgers, Facts& facts) {
  facts.malloc_heaps = ledgers.most_malloc_heaps;
  facts.cgroup_current_share = ledgers.cgroup_charged_share;
  facts.huge_pages_bytes = ledgers.huge_pages_bytes;
  facts.live_heap_bytes = ledgers.live_heap_bytes;
  if (!facts.slack_share) {  // the tracer knows better
    facts.slack_share = ledgers.free_share;
  }
}

Facts gather_facts(const RunTracks& run, const JudgedTracks& judged,
                   const std::vector<Overhead>& overheads) {
  Facts facts;
  facts.tree_floor_bytes = host_floor(run, judged);
  add_trainer(run, judged, facts);
  const JudgedTrack& trainer = *judged_of(judged, facts.trainer_track);
  add_warmup(run, trainer, facts);
  add_first_step(run, trainer, facts);
  add_teeth(run, trainer, facts);
  add_phases(run, trainer, facts);

  const JudgedTrack* tree = judged.tree(run);
  const JudgedTrack& whole = tree == nullptr ? trainer : *tree;
  const Window all = judged_window(whole);
  const Window late{all.from + kStartShare * (all.to - all.from), all.to};
  facts.tree = moves_of(run.tracks[whole.verdict.track], late);
  if (anyone_came_or_went(judged.process_counts, late)) {
    facts.tree.rss_bytes.reset();  // its sum tells nothing then
  }
  if (!facts.tree.file_bytes) {
    facts.tree.file_bytes = growth_of_members(run, Metric::kRssFile, late, std::nullopt);
  }
  if (!facts.tree.footprint_bytes) {
    facts.tree.footprint_bytes = growth_in(whole.curve.series, late);
  }
  for (const Track& track : run.tracks) {
    if (track.kind == TrackKind::kRole && track.role == Role::kDataloaderWorker) {
      facts.dataloader_workers = moves_of(track, after_first_starts(run, track, all));
    }
  }
  facts.dataloader_workers_copy =
      std::any_of(judged.tracks.begin(), judged.tracks.end(), [&](const JudgedTrack& one) {
        return one.verdict.copy_on_write &&
               run.tracks[one.verdict.track].role == Role::kDataloaderWorker;
      });
  if (!facts.dataloader_workers.shmem_bytes) {
    facts.dataloader_workers.shmem_bytes =
        growth_of_members(run, Metric::kRssShmem, late, Role::kDataloaderWorker);
  }
  add_processes(run, judged, all, facts);
  add_others(run, judged, facts);
  facts.compile_workers_are_overhead =
      std::any_of(overheads.begin(), overheads.end(), [](const Overhead& overhead) {
        return overhead.role == Role::kCompileWorker && overhead.processes >= kPool;
      });
  return facts;
}

}  // namespace tidemark::tracker
