// SPDX-License-Identifier: Apache-2.0
#include "tracker/causes/advice.h"

#include <algorithm>
#include <array>

#include "common/units.h"
#include "tracker/causes/signature_facts.h"

namespace tidemark::tracker {
namespace {

bool rises(const Facts& f) {
  return f.trainer_verdict == Verdict::kLeak || f.trainer_verdict == Verdict::kGrowing;
}

bool grows_in_a_phase(const Facts& f) {
  return std::any_of(f.trainer_in_phases.begin(), f.trainer_in_phases.end(),
                     [](const auto& in) { return in.rising >= 2 && in.inside_share() >= 0.5; });
}

// Growth of the trainer that is neither shared, nor swapped, nor a part of one phase.
bool grows_by_itself(const Facts& f) {
  const double half = f.trainer.footprint_bytes.value_or(0.0) / 2.0;
  return !grows_in_a_phase(f) && f.trainer.shmem_bytes.value_or(0.0) <= half &&
         f.trainer.swap_bytes.value_or(0.0) <= half;
}

bool steady_leak(const Facts& f) {
  return f.trainer_verdict == Verdict::kLeak && f.trainer_leak_shape == LeakShape::kLinear &&
         grows_by_itself(f);
}

bool mostly_in(const Facts& f, PhaseKind kind, std::uint32_t at_least) {
  return f.in(kind).rising >= at_least && f.in(kind).inside_share() >= 0.7;
}

bool long_warmup(const Facts& f) {
  return f.trainer_verdict == Verdict::kWarmup && f.is_much(f.trainer.footprint_bytes) &&
         (f.warmup_steps ? *f.warmup_steps >= 20.0 : f.warmup_s.value_or(0.0) >= 60.0);
}

bool long_teeth(const Facts& f) {
  return f.sawtooth && !grows_in_a_phase(f) &&
         (f.tooth_steps ? *f.tooth_steps >= 20.0 : f.tooth_s.value_or(0.0) >= 60.0);
}

bool mostly_shared(const Facts& f) {
  return f.is_much(f.trainer.shmem_bytes) &&
         *f.trainer.shmem_bytes >= 0.6 * f.trainer.footprint_bytes.value_or(0.0);
}

bool same_every_step(const Facts& f) {
  return f.bytes_per_step && f.rate_spread && *f.rate_spread <= 0.1;
}

bool may_keep_frames(const Facts& f) {
  return same_every_step(f) && f.compile_workers_most > 0 && f.compiler_disable.value_or(false);
}

bool flat(const Facts& f, std::optional<double> bytes) { return bytes && !f.is_much(bytes); }

// What checkpoints add stays. In a leak one fall among many steps is something else's.
bool checkpoints_keep(const Facts& f) {
  const PhaseGrowth& in = f.in(PhaseKind::kCheckpoint);
  return in.released == 0 || (f.trainer_verdict == Verdict::kLeak && 4 * in.released <= in.kept);
}

// Garbage of cycles is a part of what grows.
bool garbage_grows(const Facts& f) {
  return f.interpreter && f.interpreter->garbage_bytes > kMiB &&
         f.is_much(f.interpreter->garbage_bytes);
}

// How many objects may come before the youngest generation is collected, and how often that happens
// before the oldest one is: by default 700 (2,000 since 3.13) and 100.
bool collects_rarely(const InterpreterFacts& facts) {
  constexpr std::int64_t kManyObjects = 20'000;
  constexpr std::int64_t kManyTimes = 1'000;
  const std::vector<std::int64_t>& thresholds = facts.gc_thresholds;
  return !thresholds.empty() &&
         (thresholds[0] >= kManyObjects ||
          (thresholds.size() > 2 && thresholds[1] * thresholds[2] >= kManyTimes));
}

bool grew_in_allocator(const Facts& f) { return f.slack_share.value_or(0.0) > 0.5; }

constexpr auto kRules = std::to_array<AdviceRule>({
    {{"dataloader_copy_on_write",
      "the workers' own share of memory rises while their resident size stands still",
      "Reading a Python list or dict writes its reference counts, so each worker slowly gets its "
      "own copy of the data set that it inherited. It ends when all of it is copied.",
      "Keep the samples in one numpy array, Arrow table or tensor instead of Python objects, or "
      "use "
      "fewer workers."},
     [](const Facts& f) {
       const double own = f.dataloader_workers.footprint_bytes.value_or(
           f.dataloader_workers.pss_bytes.value_or(0));
       const bool seen =
           f.dataloader_workers.rss_bytes && *f.dataloader_workers.rss_bytes <= 0.2 * own;
       return f.is_much(own) && (seen || f.dataloader_workers_copy);
     }},
    {{"first_epoch_cache", "the trainer grew in a straight line and stopped",
      "Something is kept per sample until every sample was seen once: decoded images, a data set "
      "cache, lazily loaded rows.",
      "Nothing to do if the plateau fits; else decode per item or bound the cache."},
     [](const Facts& f) {
       return long_warmup(f) && f.trainer_form == GrowthForm::kStraight &&
              f.ended_with_epoch.value_or(false) && !grew_in_allocator(f);
     }},
    {{"compile_workers", "many compile workers hold a constant amount",
      "torch.compile keeps a pool of processes; most of what each of them shows is shared.",
      "Set TORCHINDUCTOR_COMPILE_THREADS to a small number, or "
      "TORCHINDUCTOR_QUIESCE_ASYNC_COMPILE_POOL=1 to let the pool rest when it is idle."},
     [](const Facts& f) { return f.compile_workers_are_overhead; }},
    {{"compile_pool_returns", "the pool of compile workers quit and came back",
      "The pool rests after a minute without work. The sum of the tree moves with it; the trainer "
      "does not.",
      "Nothing to do. Compilation late in a run may mean new shapes: TORCH_LOGS=recompiles tells."},
     [](const Facts& f) { return f.compile_pool_returned && !rises(f); }},
    {{"recompilation", "the trainer grows and compile workers are woken again and again",
      "New input shapes or changed guards make torch.compile build and keep another graph each "
      "time.",
      "TORCH_LOGS=recompiles names the guard; use dynamic=True or mark_dynamic, pad or bucket the "
      "shapes."},
     [](const Facts& f) { return rises(f) && f.compile_bursts >= 3; }},
    {{"compiled_frames_kept",
      "the same number of bytes at every step, with torch.compile and torch.compiler.disable in "
      "use",
      "Frames that cross from compiled code into functions marked as disabled can be kept for "
      "ever.",
      "Upgrade torch; do not nest torch.compiler.disable inside compiled functions."},
     [](const Facts& f) { return steady_leak(f) && may_keep_frames(f) && f.compile_bursts < 3; }},
    {{"primitive_cache", "growth that slows down ever since the start, on the CPU",
      "oneDNN keeps a compiled primitive for each new shape, up to a limit.",
      "Bucket the shapes, or lower ONEDNN_PRIMITIVE_CACHE_CAPACITY and LRU_CACHE_CAPACITY."},
     [](const Facts& f) {
       return f.trainer_form == GrowthForm::kSlowing && !f.sawtooth &&
              f.is_much(f.trainer.footprint_bytes) && f.grows_in_onednn.value_or(false);
     }},
    {{"malloc_arenas", "dozens of 64 MiB heaps in one process",
      "glibc gives threads heaps of their own, and free memory in one is of no use to the others.",
      "Set MALLOC_ARENA_MAX=2, or preload jemalloc or tcmalloc."},
     [](const Facts& f) { return f.malloc_heaps.value_or(0) >= 24; }},
    {{"freed_but_kept", "most of the growth is memory that was freed and that the allocator keeps",
      "The allocator can return only whole pages at the end of its heap, and its threshold for "
      "returning them rises with the size of the blocks.",
      "Set MALLOC_MMAP_THRESHOLD_=131072 and MALLOC_TRIM_THRESHOLD_=131072, or call malloc_trim "
      "now "
      "and then."},
     [](const Facts& f) { return f.is_much(f.trainer.footprint_bytes) && grew_in_allocator(f); }},
    {{"pinned_host_memory",
      "shared memory of the trainer rises, nothing in /dev/shm does, and a GPU is in use",
      "Pinned host buffers are cached and rounded up to powers of two.",
      "Reuse buffers, prefetch less, pin fewer sizes; empty the host cache between phases."},
     [](const Facts& f) {
       return mostly_shared(f) && f.gpu_used && !f.unheld_shm_grows && f.shm_managers_most < 2;
     }},
    {{"file_system_sharing",
      "shared memory rises, and there are several torch_shm_manager processes",
      "With the file_system strategy, tensors that workers send live as files in /dev/shm and are "
      "removed late.",
      "Use the file_descriptor strategy (raise ulimit -n), fewer or persistent workers."},
     [](const Facts& f) {
       return f.shm_managers_most >= 2 && (f.unheld_shm_grows || f.is_much(f.trainer.shmem_bytes) ||
                                           f.is_much(f.dataloader_workers.shmem_bytes));
     }},
    {{"unheld_shm", "segments in /dev/shm that no process holds pile up",
      "Processes that made shared segments ended without removing them, often killed ones.",
      "Remove the stale names in /dev/shm; close and unlink segments in a finally block, and let "
      "workers end by themselves."},
     [](const Facts& f) { return f.unheld_shm_grows && f.shm_managers_most < 2; }},
    {{"shared_segment",
      "resident sizes rise while the sum that counts shared pages once stands still",
      "Processes touch more and more of one shared segment; each of them shows it, it exists once.",
      "Not a leak. Watch footprint or pss instead of the sum of rss."},
     [](const Facts& f) {
       return f.is_much(f.tree.rss_bytes) && f.tree.pss_bytes &&
              *f.tree.pss_bytes <= 0.2 * *f.tree.rss_bytes &&
              f.tree.footprint_bytes.value_or(0.0) <= 0.2 * *f.tree.rss_bytes &&
              f.tree.file_bytes.value_or(0.0) <= 0.5 * *f.tree.rss_bytes;
     }},
    {{"file_mapping", "mapped files fill memory, all else stands still",
      "A memory-mapped data set or model is being read; the kernel drops those pages when it needs "
      "the room.",
      "Not a leak. To confirm, load the data into memory or stream it and compare."},
     [](const Facts& f) {
       return f.is_much(f.tree.file_bytes) &&
              f.tree.footprint_bytes.value_or(0.0) <= 0.2 * *f.tree.file_bytes;
     }},
    {{"page_cache_in_cgroup", "the container is near its limit, the processes are not",
      "Files that were read count towards memory.current until somebody needs the room.",
      "Harmless without memory pressure. Alarm on anonymous memory instead."},
     [](const Facts& f) {
       return f.cgroup_current_share.value_or(0.0) >= 0.9 && !f.is_much(f.tree.footprint_bytes);
     }},
    {{"swapped_out", "memory grows in swap while the resident size stands still or falls",
      "What grows is never used again, so the kernel moves it out: a leak that rss does not show.",
      "Judge resident and swapped memory together."},
     [](const Facts& f) {
       return f.is_much(f.trainer.swap_bytes) && f.is_much(f.trainer.footprint_bytes) &&
              *f.trainer.swap_bytes >= 0.5 * *f.trainer.footprint_bytes &&
              f.trainer.rss_bytes.value_or(0.0) <= 0.2 * *f.trainer.footprint_bytes;
     }},
    {{"checkpoint_cycle", "a step at each checkpoint, given back at some later time",
      "The copy of the state that was saved is in a reference cycle and waits for the collector.",
      "Call gc.collect() after saving; upgrade torch if distributed checkpoints are in use."},
     [](const Facts& f) {
       const PhaseGrowth& in = f.in(PhaseKind::kCheckpoint);
       return mostly_in(f, PhaseKind::kCheckpoint, 3) && in.kept >= 2 && !checkpoints_keep(f);
     }},
    {{"checkpoint_state_kept", "a step at each checkpoint that stays",
      "Each save leaves something behind: a copy of the state, a history, an open writer.",
      "Keep no reference to the saved state; reuse one staging buffer; save in a child process."},
     [](const Facts& f) {
       const PhaseGrowth& in = f.in(PhaseKind::kCheckpoint);
       return mostly_in(f, PhaseKind::kCheckpoint, 3) && in.kept >= 3 && checkpoints_keep(f) &&
              !f.aarch64.value_or(false);
     }},
    {{"async_save_allocator", "a step at each checkpoint that stays, on aarch64",
      "Buffers that the saving thread frees belong to another thread's heap and are not reused.",
      "Reuse one stager for all saves; follow the fix for asynchronous saves in torch."},
     [](const Facts& f) {
       const PhaseGrowth& in = f.in(PhaseKind::kCheckpoint);
       return mostly_in(f, PhaseKind::kCheckpoint, 3) && in.kept >= 3 && checkpoints_keep(f) &&
              f.aarch64.value_or(false);
     }},
    {{"full_state_dict", "host and GPU memory jump together at each checkpoint, with several ranks",
      "Saving gathers the whole model on every rank.",
      "Save sharded state dicts; collect garbage and empty the cache after saving."},
     [](const Facts& f) {
       return f.ranks >= 2 && f.in(PhaseKind::kCheckpoint).rising >= 2 &&
              f.gpu_in(PhaseKind::kCheckpoint).rising >= 2;
     }},
    {{"graph_kept_until_epoch_end",
      "the trainer grows at every step and falls back when the epoch ends",
      "Losses or outputs are collected over the epoch with their autograd graphs.",
      "Collect loss.item() or loss.detach() instead."},
     [](const Facts& f) { return f.sawtooth && f.tooth_is_epoch.value_or(false); }},
    {{"eval_outputs", "the trainer grows during evaluation and hardly elsewhere",
      "The evaluation holds a whole data set at once: its samples, or all predictions until the "
      "metric is computed.",
      "Load and score batch by batch; reduce logits before keeping them; lower "
      "eval_accumulation_steps."},
     [](const Facts& f) { return mostly_in(f, PhaseKind::kEval, 2) && !f.workers_come_at_evals; }},
    {{"eval_workers_stay", "each evaluation adds worker processes that stay",
      "A new loader with persistent workers is made for every evaluation.",
      "Make the evaluation loader once, or set persistent_workers=False for it."},
     [](const Facts& f) { return f.workers_come_at_evals; }},
    {{"logging_lists", "the trainer grows while it logs metrics",
      "Values, figures or hook outputs are appended to lists that nobody clears.",
      "Clear the lists after each epoch, log plain numbers, remove hooks."},
     [](const Facts& f) { return rises(f) && mostly_in(f, PhaseKind::kLogging, 2); }},
    {{"profiler_buffers", "the trainer grows while the profiler is on",
      "The profiler keeps every event until it is stopped.", "Give it a schedule of a few steps."},
     [](const Facts& f) { return mostly_in(f, PhaseKind::kProfile, 1); }},
    {{"tokenizer_cache", "memory grows while text is tokenised",
      "The tokenizer caches every word that it has split; long strings never repeat.",
      "Clear or renew the tokenizer from time to time, or tokenise in short-lived processes."},
     [](const Facts& f) {
       return f.tokenizer_process_grows || mostly_in(f, PhaseKind::kTokenize, 1);
     }},
    {{"repeated_export", "memory grows each time the model is traced or exported",
      "Compiled functions of torch.jit live in a global table until the process ends.",
      "Export in a child process, or use torch.export."},
     [](const Facts& f) { return mostly_in(f, PhaseKind::kExport, 2); }},
    {{"math_library_buffers", "a few kilobytes at every step, on the CPU",
      "Linear algebra libraries keep a work area per thread and call.",
      "Upgrade MKL or OpenBLAS; keep the number of threads constant; mkl_free_buffers() tells."},
     [](const Facts& f) {
       return (steady_leak(f) || f.trainer_drifts) && f.grows_in_math_library.value_or(false);
     }},
    {{"autograd_function_cycle", "the trainer grows at every step, with a custom autograd function",
      "The context of a custom function and its outputs hold each other across C++ and Python, "
      "where "
      "no collector sees it.",
      "Keep tensors with save_for_backward only; upgrade torch."},
     [](const Facts& f) { return steady_leak(f) && f.custom_autograd_function.value_or(false); }},
    {{"gpu_outside_torch", "the driver counts more and more GPU memory, torch's allocator does not",
      "CUDA graphs, NCCL, OpenGL or another library allocates by itself.",
      "Find the library by switching off one at a time; recreate its context."},
     [](const Facts& f) {
       return f.trainer.gpu_bytes && f.torch_reserved_gpu_bytes &&
              *f.trainer.gpu_bytes > 64.0 * kMiB &&
              *f.torch_reserved_gpu_bytes <= 0.2 * *f.trainer.gpu_bytes;
     }},
    {{"optimizer_state", "one jump at the first step, flat since then",
      "The optimizer makes its state when it is first used: 8 bytes per parameter for Adam.",
      "Expected. Count it in when sizing the machine."},
     [](const Facts& f) {
       // Smaller ones are as often a cache or a library that was loaded.
       const double jump = f.trainer.footprint_bytes.value_or(0.0);
       return f.jumped_at_first_step && !rises(f) && jump >= 128.0 * kMiB &&
              jump >= 0.1 * f.tree_floor_bytes;
     }},
    {{"processes_pile_up", "the number of processes keeps rising",
      "A loader, pool or manager is made anew, in each epoch or request, and never closed.",
      "Make it once and reuse it; close it in a finally block."},
     [](const Facts& f) { return f.processes_keep_coming && !f.workers_come_at_evals; }},
    {{"orphaned_workers", "workers are alive although their trainer is gone",
      "The trainer was killed and its workers wait for a message that never comes.",
      "End them by pid; let workers ask for PR_SET_PDEATHSIG."},
     [](const Facts& f) { return f.workers_outliving_trainer > 0; }},
    {{"collector_sawtooth", "slow rises that fall at once, with a long period",
      "Reference cycles hold tensors until the collector's oldest generation runs; some frameworks "
      "switch it off.",
      "Call gc.collect() every few hundred steps, or break the cycle."},
     [](const Facts& f) { return long_teeth(f) && !f.tooth_is_epoch.value_or(false); }},
    {{"incremental_collector",
      "Python 3.14.0 to 3.14.4, and memory that rises or piles up in cycles",
      "The collector of these releases frees garbage late: a process may hold up to five times "
      "what "
      "it needs. It is no leak, and later releases do without it.",
      "Upgrade to Python 3.14.5 or later; until then call gc.collect() every few hundred steps."},
     [](const Facts& f) {
       return f.interpreter && collects_late(f.interpreter->facts) &&
              (rises(f) || long_teeth(f) || garbage_grows(f));
     }},
    {{"collector_off", "garbage collection is switched off, and garbage in cycles piles up",
      "Objects that refer to each other are freed by the collector alone.",
      "Call gc.enable(), or gc.collect() every few hundred steps; better, break the cycle."},
     [](const Facts& f) {
       return garbage_grows(f) && !f.interpreter->facts.gc_enabled.value_or(true);
     }},
    {{"collector_frozen", "gc.freeze() was called, and garbage in cycles piles up",
      "What was there at that call is never collected, and what it leads to stays with it.",
      "Freeze before training begins and only once, or call gc.unfreeze() now and then."},
     [](const Facts& f) {
       return garbage_grows(f) && f.interpreter->facts.gc_frozen_objects.value_or(0) > 0 &&
              f.interpreter->facts.gc_enabled.value_or(true);
     }},
    {{"collector_rare", "the thresholds of gc are high, and garbage in cycles piles up",
      "The collector runs seldom, and few large objects (tensors) count as little as small ones.",
      "Lower the thresholds, or call gc.collect() every few hundred steps."},
     [](const Facts& f) {
       return garbage_grows(f) && f.interpreter->facts.gc_enabled.value_or(true) &&
              collects_rarely(f.interpreter->facts);
     }},
    {{"shuffle_buffers", "growth that slows down and saturates late, with tf.data in the process",
      "Shuffle buffers and reader threads fill up slowly.",
      "Use a smaller shuffle buffer and fewer parallel reads."},
     [](const Facts& f) {
       return f.trainer_form == GrowthForm::kSlowing && f.tensorflow_loaded.value_or(false) &&
              f.is_much(f.trainer.footprint_bytes);
     }},
    {{"huge_pages", "huge pages grow while the live heap stands still",
      "The kernel fills the holes of a fragmented heap with huge pages.",
      "Set transparent huge pages to madvise, or MADV_NOHUGEPAGE for that heap."},
     [](const Facts& f) { return f.is_much(f.huge_pages_bytes) && flat(f, f.live_heap_bytes); }},
    {{"kept_per_step", "the trainer grows at a steady rate",
      "Something that each step makes is kept: a loss with its graph, batches in a list, a cache "
      "without a bound.",
      "Look for tensors that are appended without .detach() and for caches that nothing bounds."},
     [](const Facts& f) {
       return steady_leak(f) && f.bytes_per_step.value_or(kMiB) > kMiB / 16.0 &&
              f.compile_bursts < 3 && !may_keep_frames(f) &&
              !f.custom_autograd_function.value_or(false) && !f.tokenizer_process_grows;
     }},
});

}  // namespace

std::span<const AdviceRule> advice_rules() { return kRules; }

std::vector<Advice> advice_for(const Facts& facts) {
  std::vector<Advice> found;
  for (const AdviceRule& rule : kRules) {
    if (rule.fits(facts)) {
      found.push_back(rule.advice);
    }
  }
  return found;
}

}  // namespace tidemark::tracker
