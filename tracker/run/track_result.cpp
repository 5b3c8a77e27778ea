// SPDX-License-Identifier: Apache-2.0
#include "tracker/run/track_result.h"

#include <utility>

#include "common/exit_code.h"

namespace tidemark::tracker {

TrackResult judge_tracks(RunTracks run, const JudgeOptions& options) {
  Options judging;
  judging.warmup = options.warmup;
  judging.min_leak = options.min_leak;
  judging.epoch_steps = run.epoch_steps;
  judging.epoch_seconds = run.epoch_seconds;
  if (options.limit_bytes) {
    run.limit_bytes = static_cast<double>(*options.limit_bytes);
    run.limit_source = "--limit";
  }
  if (options.metric == Metric::kGpu && !options.limit_bytes) {
    run.limit_bytes = run.gpu_limit_bytes;  // not that of the machine's memory
    run.limit_source = run.gpu_limit_source;
  }
  judging.limit_bytes = run.limit_bytes;
  TrackResult result{std::move(run), {}, options.metric};
  result.verdict = judge_run(result.run, judging, options.metric);
  return result;
}

int exit_code_of(const TrackResult& result) {
  if (!result.verdict) {
    return kExitUndetermined;
  }
  switch (result.verdict->verdict) {
    case Verdict::kLeak:
      return kExitLeak;
    case Verdict::kGrowing:
      return kExitUndetermined;
    case Verdict::kStable:
    case Verdict::kWarmup:
    case Verdict::kSpikes:
      break;
  }
  return result.verdict->answer().reading.undetermined ? kExitUndetermined : kExitOk;
}

}  // namespace tidemark::tracker
