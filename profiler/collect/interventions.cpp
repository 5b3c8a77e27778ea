// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/interventions.h"

#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/io.h"
#include "common/text.h"
#include "common/units.h"
#include "monitor/procfs/cgroup_files.h"
#include "monitor/procfs/proc_files.h"
#include "profiler/collect/preload.h"
#include "profiler/inject/attach.h"

namespace tidemark::collect {
namespace {

using inject::AddressSpace;
using inject::RemoteMemory;
using wire::ProbeResult;
using wire::ProbeTask;

struct Allocator {
  InterventionKind kind;
  ProbeTask task;
  std::string_view function;
  std::string_view call;
};
constexpr std::array<Allocator, 4> kAllocators{
    {{InterventionKind::kTrim, ProbeTask::kTrim, "malloc_trim", "malloc_trim(0)"},
     {InterventionKind::kJemalloc, ProbeTask::kJemalloc, "mallctl", "mallctl(\"arena.*.purge\")"},
     {InterventionKind::kTcmalloc, ProbeTask::kTcmalloc, "MallocExtension_ReleaseFreeMemory",
      "MallocExtension_ReleaseFreeMemory()"},
     {InterventionKind::kMimalloc, ProbeTask::kMimalloc, "mi_collect", "mi_collect(true)"}}};

// The first library that has the function, if any.
std::optional<PlannedIntervention> plan_allocator(const Allocator& allocator,
                                                  const AddressSpace& space,
                                                  const RemoteMemory& memory) {
  for (const inject::RemoteModule& module : space.modules) {
    const std::uint64_t function = inject::find_exported(module, memory, allocator.function);
    if (function != 0) {
      PlannedIntervention step;
      step.kind = allocator.kind;
      step.how = fmt::format("{} of {}", allocator.call, escape_text(basename_of(module.path)));
      step.order.task = allocator.task;
      step.order.function = function;
      return step;
    }
  }
  return std::nullopt;
}

PlannedIntervention plan_python(InterventionKind kind, const Result<wire::ProbePython>& python) {
  const bool is_gc = kind == InterventionKind::kGc;
  PlannedIntervention step;
  step.kind = kind;
  step.how = is_gc ? "gc.collect()"
                   : "torch.cuda.empty_cache() and the cache of pinned memory, if torch uses a GPU";
  step.order.task = is_gc ? ProbeTask::kGc : ProbeTask::kCuda;
  if (python) {
    step.order.python = *python;
  } else {
    step.problem = python.error().what;
    step.is_absent = python.error().code == Errc::kNotFound;
  }
  return step;
}

void plan_calls(const AddressSpace& space, const RemoteMemory& memory,
                const InterventionChoice& choice, std::vector<PlannedIntervention>& steps) {
  if (choice.trim) {
    for (const Allocator& allocator : kAllocators) {
      if (auto step = plan_allocator(allocator, space, memory)) {
        steps.push_back(*std::move(step));
      }
    }
  }
  if (!choice.gc && !choice.cuda) {
    return;
  }
  const auto python = inject::find_probe_python(space, memory);
  if (choice.gc) {
    steps.push_back(plan_python(InterventionKind::kGc, python));
  }
  if (choice.cuda) {
    steps.push_back(plan_python(InterventionKind::kCuda, python));
  }
}

// Where its memory may not be looked at, what could be asked is not known either.
void plan_refused(const Error& why, const InterventionChoice& choice,
                  std::vector<PlannedIntervention>& steps) {
  const auto add = [&](InterventionKind kind, std::string how) {
    PlannedIntervention step;
    step.kind = kind;
    step.how = std::move(how);
    step.problem = why.what;
    steps.push_back(std::move(step));
  };
  if (choice.trim) {
    add(InterventionKind::kTrim, "malloc_trim(0)");
  }
  if (choice.gc) {
    add(InterventionKind::kGc, "gc.collect()");
  }
  if (choice.cuda) {
    add(InterventionKind::kCuda, "torch.cuda.empty_cache()");
  }
}

void plan_readings(pid_t pid, std::vector<PlannedIntervention>& steps) {
  PlannedIntervention mapped;
  mapped.kind = InterventionKind::kMappedFiles;
  mapped.how = "read /proc/PID/status";
  steps.push_back(std::move(mapped));
  if (read_droppable(pid, InterventionKind::kPageCache)) {
    PlannedIntervention cache;
    cache.kind = InterventionKind::kPageCache;
    cache.how = "read memory.stat of its control group";
    steps.push_back(std::move(cache));
  }
}

std::string timed_out_text(std::uint64_t waited_ns) {
  return fmt::format(
      "no thread let another one run Python for {}; it was withdrawn, and will not be done later",
      format_duration(to_seconds(static_cast<std::int64_t>(waited_ns))));
}

// What the answer means where nothing was done.
void explain(const wire::ProbeOutcome& outcome, const PlannedIntervention& step,
             InterventionAnswer& answer) {
  switch (outcome.result) {
    case ProbeResult::kDone:
      answer.is_done = true;
      break;
    case ProbeResult::kFailed:
      answer.problem = fmt::format("{} has failed with {}", step.how, outcome.value);
      break;
    case ProbeResult::kWithdrawn:
      answer.problem = step.order.function == 0
                           ? timed_out_text(outcome.waited_ns)
                           : "the process did not run in the meantime; it was withdrawn";
      break;
    case ProbeResult::kNoPython:
      answer.problem = "its interpreter is not initialised, or about to exit";
      break;
    case ProbeResult::kNoTorch:
      answer.problem = "torch is not imported";
      answer.is_absent = true;
      break;
    case ProbeResult::kNoCuda:
      answer.problem = "torch uses no GPU";
      answer.is_absent = true;
      break;
    case ProbeResult::kRaised:
      answer.problem = fmt::format("{} has raised an exception", step.how);
      break;
  }
}

void add_figures(const wire::ProbeOutcome& outcome, const PlannedIntervention& step,
                 InterventionAnswer& answer) {
  answer.took_s = to_seconds(static_cast<std::int64_t>(outcome.took_ns));
  answer.waited_s = to_seconds(static_cast<std::int64_t>(outcome.waited_ns));
  if (!answer.is_done) {
    return;
  }
  if (outcome.objects >= 0) {
    answer.objects = static_cast<std::uint64_t>(outcome.objects);
  }
  if (outcome.gpu_before_bytes >= 0 && outcome.gpu_after_bytes >= 0) {
    answer.gpu_bytes = outcome.gpu_before_bytes - outcome.gpu_after_bytes;
  }
  if (outcome.frozen_objects > 0) {
    answer.problem =
        fmt::format("{} are frozen (gc.freeze) and were not looked at",
                    format_count(static_cast<std::uint64_t>(outcome.frozen_objects), "object"));
  } else if (step.kind == InterventionKind::kCuda && !outcome.has_emptied_pinned) {
    answer.problem = "this torch cannot empty its cache of pinned memory";
  } else if (outcome.has_more_interpreters) {
    answer.problem = "it has subinterpreters, which were left alone";
  }
}

}  // namespace

Result<inject::Probe> start_probe(pid_t pid, std::int64_t timeout_ns,
                                  std::function<bool()> is_cancelled) {
  TIDEMARK_TRY_ASSIGN(auto library, find_library_beside("libtidemark_probe.so"));
  return inject::Probe::start(pid, {std::move(library), timeout_ns, std::move(is_cancelled)});
}

Result<InterventionPlan> plan_interventions(pid_t pid, const InterventionChoice& choice) {
  InterventionPlan plan;
  if (choice.page_cache) {
    plan_readings(pid, plan.steps);
  }
  if (choice.trim || choice.gc || choice.cuda) {
    plan.allowed = inject::check_target(pid);
    if (!plan.allowed && (plan.allowed.error().code == Errc::kNotFound ||
                          plan.allowed.error().code == Errc::kGone)) {
      return plan.allowed.error();
    }
    auto memory =
        plan.allowed ? RemoteMemory::open(pid) : Result<RemoteMemory>(plan.allowed.error());
    const auto space =
        memory ? inject::read_address_space(pid, *memory) : Result<AddressSpace>(memory.error());
    if (space) {
      plan_calls(*space, *memory, choice, plan.steps);
    } else {
      plan_refused(space.error(), choice, plan.steps);
      plan.allowed = space.error();
    }
  }
  return plan;
}

Result<InterventionAnswer> intervene(inject::Probe& probe, const PlannedIntervention& step,
                                     std::int64_t timeout_ns) {
  wire::ProbeOrder order = step.order;
  order.most_wait_ns = static_cast<std::uint64_t>(timeout_ns);
  InterventionAnswer answer;
  const auto ran = probe.run(order, timeout_ns);
  if (!ran) {
    if (ran.error().code == Errc::kGone) {
      return ran.error();
    }
    answer.problem = ran.error().what;
    return answer;
  }
  if (ran->ending == inject::Probe::Ending::kStillRunning) {
    answer.problem = fmt::format("it was begun, and still runs after {}",
                                 format_duration(2 * to_seconds(timeout_ns)));
    return answer;
  }
  explain(ran->outcome, step, answer);
  add_figures(ran->outcome, step, answer);
  return answer;
}

Result<DroppablePart> read_droppable(pid_t pid, InterventionKind kind) {
  if (kind == InterventionKind::kMappedFiles) {
    TIDEMARK_TRY_ASSIGN(const auto text, read_file(fmt::format("/proc/{}/status", pid)));
    TIDEMARK_TRY_ASSIGN(const auto status, monitor::parse_status(text));
    if (!status.rss_bytes || !status.rss_file_bytes) {
      return Error{Errc::kNotFound, "the kernel does not tell files from other memory"};
    }
    return DroppablePart{*status.rss_bytes, *status.rss_file_bytes};
  }
  const Error none{Errc::kNotFound, "it is in no control group that counts memory"};
  const auto group = monitor::memory_cgroup_of("", pid);
  if (!group || group->directories.empty()) {
    return none;
  }
  const std::string& folder = group->directories.front();
  const auto stat = read_file(folder + "/memory.stat");
  const auto used = read_file(folder + (group->v2 ? "/memory.current" : "/memory.usage_in_bytes"));
  const auto cache = stat ? monitor::cgroup_page_cache_bytes(*stat, group->v2) : std::nullopt;
  const auto whole = used ? parse_number<std::uint64_t>(trim(*used)) : std::nullopt;
  return cache && whole ? Result<DroppablePart>(DroppablePart{*whole, *cache})
                        : Result<DroppablePart>(none);
}

}  // namespace tidemark::collect
