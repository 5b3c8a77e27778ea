// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tracker/causes/interpreters.h"
#include "tracker/curve/curve_window.h"
#include "tracker/curve/series.h"
#include "tracker/curve/series_verdict.h"
#include "tracker/run/run_tracks.h"

namespace tidemark::tracker {

// What a marked phase is for, told by its name.
enum class PhaseKind { kEval, kCheckpoint, kProfile, kTokenize, kExport, kLogging, kOther };
inline constexpr std::size_t kPhaseKindCount = 7;

PhaseKind phase_kind(std::string_view name);

// One finished phase of a run.
struct Phase {
  PhaseKind kind = PhaseKind::kOther;
  double from_s = 0.0;
  double to_s = 0.0;
};
// In the order in which they began. A phase that never ended is left out.
std::vector<Phase> phases_of(const std::vector<RunEvent>& events);

// How a curve moved inside the phases of one kind, and between them.
struct PhaseGrowth {
  std::uint32_t phases = 0;
  std::uint32_t rising = 0;    // phases in which the curve rose by more than the threshold
  std::uint32_t kept = 0;      // of those: the rise was still there when the next one began
  std::uint32_t released = 0;  // falls: of those, it was not; or one inside a phase
  double inside_bytes = 0.0;   // sum of the rises inside
  double outside_bytes = 0.0;  // sum of the rises after them; the start of the run is no part of it

  double inside_share() const {
    const double all = inside_bytes + outside_bytes;
    return all > 0.0 ? inside_bytes / all : 0.0;
  }
};

PhaseGrowth growth_in_phases(const Series& series, const std::vector<Phase>& phases, PhaseKind kind,
                             double threshold_bytes);

struct JudgedTracks;
struct Overhead;
struct RunTracks;

// By how much each kind of memory grew over the judged part of the run; nullopt: not recorded.
struct Moves {
  std::optional<double> footprint_bytes;
  std::optional<double> rss_bytes;
  std::optional<double> pss_bytes;
  std::optional<double> file_bytes;
  std::optional<double> shmem_bytes;
  std::optional<double> swap_bytes;
  std::optional<double> gpu_bytes;
};

// What the advice table asks about: facts of a run that tell one known cause from another.
struct Facts {
  double tree_floor_bytes = 0.0;  // what counts as much is measured against it

  // The process that trains; of several ranks the largest. Without one, the largest process, or the
  // tree.
  std::size_t trainer_track = 0;  // index into RunTracks::tracks
  Verdict trainer_verdict = Verdict::kStable;
  LeakShape trainer_leak_shape = LeakShape::kLinear;
  bool trainer_drifts = false;  // a trend below the gate
  GrowthForm trainer_form = GrowthForm::kNone;
  Moves trainer;
  std::optional<double> slack_share;   // of its growth: freed, and kept by the allocator
  std::optional<double> warmup_steps;  // how long its warm-up took
  std::optional<double> warmup_s;
  std::optional<bool> ended_with_epoch;  // its warm-up ended with the first epoch
  bool jumped_at_first_step = false;
  std::optional<double> bytes_per_step;
  std::optional<double> rate_spread;  // width of the interval of the rate, as a share of the rate
  bool sawtooth = false;              // rises slowly, falls at once, again and again
  std::optional<double> tooth_steps;  // the length of one tooth
  std::optional<double> tooth_s;
  std::optional<bool> tooth_is_epoch;
  std::array<PhaseGrowth, kPhaseKindCount> trainer_in_phases{};
  std::array<PhaseGrowth, kPhaseKindCount> gpu_in_phases{};

  std::optional<InterpreterState> interpreter;  // of the trainer; needs looks at its heap

  Moves tree;
  Moves dataloader_workers;
  bool dataloader_workers_copy = false;  // their growth was judged to be copy-on-write
  bool unheld_shm_grows = false;
  bool gpu_used = false;

  std::uint32_t ranks = 0;
  std::uint32_t dataloader_workers_most = 0;
  std::uint32_t compile_workers_most = 0;
  std::uint32_t shm_managers_most = 0;
  std::uint32_t compile_bursts =
      0;  // times at which compile workers came, without the first minutes
  bool compile_workers_are_overhead = false;
  bool compile_pool_returned = false;
  bool processes_keep_coming = false;
  bool workers_come_at_evals = false;
  std::uint32_t workers_outliving_trainer = 0;
  bool tokenizer_process_grows = false;

  // Of ledgers, see LedgerFacts.
  std::optional<std::uint64_t> malloc_heaps;   // of threads, 64 MiB each; most in one process
  std::optional<double> cgroup_current_share;  // memory.current of the limit, page cache included
  std::optional<double> huge_pages_bytes;      // growth of AnonHugePages
  std::optional<double> live_heap_bytes;       // growth of what is allocated and not freed

  // What nothing records yet, or only the tracer can see: rules that need one stay silent.
  std::optional<double> torch_reserved_gpu_bytes;  // growth of what torch's allocator holds
  std::optional<bool> aarch64;
  std::optional<bool> custom_autograd_function;
  std::optional<bool> compiler_disable;  // torch.compiler.disable, in compiled code
  std::optional<bool> tensorflow_loaded;
  std::optional<bool> grows_in_onednn;        // by the call stacks of what is kept
  std::optional<bool> grows_in_math_library;  // the same of MKL, OpenBLAS

  const PhaseGrowth& in(PhaseKind kind) const {
    return trainer_in_phases[static_cast<std::size_t>(kind)];
  }
  const PhaseGrowth& gpu_in(PhaseKind kind) const {
    return gpu_in_phases[static_cast<std::size_t>(kind)];
  }
  // At least 2 % of the tree.
  bool is_much(std::optional<double> bytes) const {
    return bytes && *bytes > 0.0 && *bytes >= 0.02 * tree_floor_bytes;
  }
};

void add_ledger_facts(const LedgerFacts& ledgers, Facts& facts);

Facts gather_facts(const RunTracks& run, const JudgedTracks& judged,
                   const std::vector<Overhead>& overheads);

}  // namespace tidemark::tracker
