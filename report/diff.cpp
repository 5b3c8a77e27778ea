// SPDX-License-Identifier: Apache-2.0
#include "report/diff.h"

#include <utility>

#include <fmt/format.h>

#include "common/exit_code.h"
#include "common/messages.h"
#include "recording/open.h"
#include "report/diff_view.h"
#include "report/output.h"
#include "tracker/compare/run_diff.h"
#include "tracker/run/judged_run.h"
#include "tracker/run/track_builder.h"

namespace tidemark::report {
namespace {

using tracker::RunDiff;
using tracker::RunTracks;

Result<RunTracks> read_tracks(const std::string& path) {
  TIDEMARK_TRY_ASSIGN(auto reader, recording::open_recording(path));
  tracker::TrackBuilder builder;
  TIDEMARK_TRY_ASSIGN(const auto summary, reader->read(builder));
  RunTracks tracks = builder.take();
  if (summary.bad_lines > 0) {
    tracks.losses.emplace_back(loss_name(LossKind::kBadLines), summary.bad_lines);
  }
  return tracks;
}

Result<RunDiff> compare(const RunTracks& a, const RunTracks& b, const DiffOptions& options) {
  tracker::JudgeOptions judging = options.judge;
  judging.metric = judging.metric ? judging.metric : common_metric(a, b);
  if (!judging.metric) {
    return Error{Errc::kMalformed,
                 "the recordings have no measure of memory in common, or one of them is empty"};
  }
  const tracker::JudgedRun judged_a = tracker::judge_run(a, judging);
  const tracker::JudgedRun judged_b = tracker::judge_run(b, judging);
  if (auto diff = compare_runs(judged_a, judged_b, *judging.metric)) {
    return *std::move(diff);
  }
  return Error{Errc::kMalformed,
               fmt::format("{} is not in both recordings", metric_name(*judging.metric))};
}

int fail(const Error& error) {
  print_error(error);
  return kExitTarget;
}

}  // namespace

int run_diff(const DiffOptions& options) {
  const auto a = read_tracks(options.a);
  if (!a) {
    return fail(a.error());
  }
  const auto b = read_tracks(options.b);
  if (!b) {
    return fail(b.error());
  }
  const auto diff = compare(*a, *b, options);
  if (!diff) {
    return fail(diff.error());
  }
  const DiffInput input_a{options.a, a->losses};
  const DiffInput input_b{options.b, b->losses};
  ExportOutput output = ExportOutput::to_stdout();
  output.buffer() =
      options.json ? diff_json(*diff, input_a, input_b) : diff_text(*diff, input_a, input_b);
  const Status written = output.finish();
  return written ? kExitOk : fail(written.error());
}

}  // namespace tidemark::report
