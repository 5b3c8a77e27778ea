// SPDX-License-Identifier: Apache-2.0
#include "live/run_recording.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "common/units.h"
#include "live/kept_runs.h"

namespace tidemark::live {
namespace {

constexpr std::string_view kIncomplete =
    "the recording is incomplete; what was written before is readable";
constexpr std::string_view kUnrecorded = "watching goes on without recording";

}  // namespace

void RunRecording::fail(const Error& error, std::string_view consequence) {
  if (options_.is_kept) {
    output_.note(fmt::format("note: {} for tidemark track --last: {}",
                             consequence == kIncomplete ? "only the beginning of this run is kept"
                                                        : "this run is not kept",
                             error.what));
    return;
  }
  output_.error(error.what, consequence);
  has_failed_ = true;
}

Status RunRecording::create() {
  if (options_.output.empty()) {
    return ok();
  }
  auto writer = recording::RunWriter::create(options_.output, {.replace = options_.force});
  if (writer) {
    recorder_ = std::make_unique<recording::Recorder>(*std::move(writer));
    return ok();
  }
  if (!options_.output_is_optional && !options_.is_kept) {
    return writer.error();
  }
  fail(writer.error(), kUnrecorded);
  return ok();
}

void RunRecording::begin(const RunInfo& info) {
  has_begun_ = true;
  if (recorder_ == nullptr) {
    return;
  }
  if (const Status begun = recorder_->begin(info); !begun) {
    fail(begun.error(), kUnrecorded);
    recorder_.reset();
  }
}

void RunRecording::add(Tick tick, const std::vector<ProcessRecord>& exited) {
  if (recorder_ == nullptr) {
    return;
  }
  const double t_s = tick.t_s;
  exited_.insert(exited_.end(), exited.begin(), exited.end());
  std::optional<Tick> wanted =
      options_.is_kept ? sparse_.add(std::move(tick)) : std::optional(std::move(tick));
  if (wanted) {
    write(*std::move(wanted));
  }
  if (const auto error = recorder_->take_error()) {
    fail(*error, kIncomplete);
    recorder_.reset();
  } else if (options_.is_kept) {
    end_when_large(t_s);
  }
}

// Does not wait for the disk; what went wrong there is known to take_error().
void RunRecording::write(Tick tick) {
  (void)recorder_->add(std::move(tick));
  for (const ProcessRecord& process : std::exchange(exited_, {})) {
    (void)recorder_->process_ended(process);
  }
}

void RunRecording::end_when_large(double t_s) {
  constexpr std::uint64_t kBetweenChecks = 32;  // ticks
  if (++ticks_ % kBetweenChecks != 0 ||
      KeptRuns::bytes_of(options_.output) <= KeptRuns::kMostBytes) {
    return;
  }
  output_.note(fmt::format("note: this run is kept until {} only, it has {}; -o FILE has no limit",
                           format_clock(t_s), format_bytes(KeptRuns::kMostBytes)));
  end(t_s);
  recorder_.reset();
}

void RunRecording::end(double t_s) {
  if (recorder_ == nullptr) {
    return;
  }
  if (auto last = sparse_.take_last()) {
    write(*std::move(last));
  }
  if (const Status ended = recorder_->end(t_s); !ended) {
    fail(ended.error(), kIncomplete);
    return;
  }
  if (options_.is_kept) {
    output_.note("this run is kept: tidemark track --last judges it again");
    return;
  }
  const auto stats = recorder_->stats();
  output_.note(fmt::format("recorded {} in {}", format_count(stats.ticks_written, "sample"),
                           options_.output));
  if (stats.ticks_dropped > 0) {
    output_.note(fmt::format("note: {} missing in it: the disk was too slow",
                             format_count(stats.ticks_dropped, "sample is", "samples are")));
  }
  if (!recorder_->is_one_file()) {
    output_.note(
        fmt::format("note: another program reads {0}: keep {0}-wal beside it", options_.output));
  }
}

}  // namespace tidemark::live
