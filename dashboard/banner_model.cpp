// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <unordered_map>

#include <fmt/format.h>

#include "common/text.h"
#include "common/units.h"
#include "dashboard/model_builder.h"
#include "report/track_words.h"

namespace tidemark::dashboard {
namespace {

using tracker::SeriesVerdict;
using tracker::Verdict;

constexpr std::size_t kLongestName = 24;

std::string short_name(const ProcessRecord& record) {
  return shorten(escape_text(record.program()), kLongestName);
}

std::string who_words(const tracker::Track& track) {
  switch (track.kind) {
    case tracker::TrackKind::kTree:
      return "the tree";
    case tracker::TrackKind::kShm:
      return "/dev/shm that nobody holds";
    case tracker::TrackKind::kRole:
      return fmt::format("{} x{}", role_name(track.role), track.most_processes);
    case tracker::TrackKind::kProcess:
      break;
  }
  return name_of(track.role, track.key.pid);
}

// Whose curve gave the answer, and who carries it.
std::string place_words(const tracker::JudgedRun& judged) {
  const tracker::RunVerdict& verdict = *judged.verdict;
  std::string text = who_words(judged.run.tracks[verdict.answer().track]);
  if (is_gpu(verdict.answer().metric)) {
    text = "GPU memory of " + text;
  }
  if (verdict.carrier && *verdict.carrier != verdict.where && verdict.carrier_share > 0.5) {
    text += ", mostly " + who_words(judged.run.tracks[verdict.tracks[*verdict.carrier].track]);
  }
  return text;
}

// The wrappers and launchers between the trainer and the root of the tree, the nearest in words.
std::string wrappers_above(const RunHistory& history, const ProcessRecord& trainer) {
  std::unordered_map<pid_t, const ProcessRecord*> by_pid;
  for (const auto& [key, process] : history.processes()) {
    by_pid[key.pid] = &process.record;
  }
  std::string text;
  int more = 0;
  constexpr int kDeepest = 16;
  pid_t pid = trainer.ppid;
  for (int depth = 0; depth < kDeepest && pid > 0; ++depth) {
    const auto parent = by_pid.find(pid);
    if (parent == by_pid.end()) {
      break;
    }
    const ProcessRecord& record = *parent->second;
    if (record.role == Role::kWrapper || record.role == Role::kLauncher) {
      if (text.empty()) {
        text =
            fmt::format("{} {} ({})", role_name(record.role), record.key.pid, short_name(record));
      } else {
        ++more;
      }
    }
    pid = record.ppid;
  }
  return more > 0 ? fmt::format("{} and {} more", text, more) : text;
}

void describe_target(const RunHistory& history, BannerModel& banner) {
  const auto trainer = history.processes().find(history.trainer());
  if (trainer == history.processes().end()) {
    banner.watched = format_count(history.tree().processes, "process", "processes");
    return;
  }
  const ProcessRecord& record = trainer->second.record;
  banner.watched = report::process_label(record.role, record.rank, record.key.pid, record.program(),
                                         kLongestName);
  if (history.all_have_exited()) {
    banner.watched += ", until it ended";
  }
  if (const std::string above = wrappers_above(history, record); !above.empty()) {
    banner.because = "not the " + above + " above it";
  }
}

Tone verdict_tone(const SeriesVerdict& reading, Verdict verdict) {
  if (verdict == Verdict::kLeak) {
    return Tone::kBad;
  }
  if (verdict == Verdict::kGrowing) {
    return Tone::kWatch;
  }
  return reading.undetermined ? Tone::kUnknown : Tone::kGood;
}

}  // namespace

BannerModel build_banner(const RunHistory& history,
                         const std::optional<tracker::JudgedRun>& judged) {
  BannerModel banner;
  if (history.is_empty()) {
    return banner;
  }
  if (history.info().time_is_steps) {
    banner.progress = history.time_format(history.now_s());
  } else {
    banner.clock = history.time_format(history.now_s());
    if (history.step()) {
      banner.progress = fmt::format("step {}", *history.step());
    }
  }
  if (history.epoch()) {
    banner.progress +=
        fmt::format("{}epoch {}", banner.progress.empty() ? "" : ", ", *history.epoch());
  }
  describe_target(history, banner);
  if (!judged || !judged->verdict) {
    banner.word = "TOO EARLY";
    banner.finding = "the first samples";
    return banner;
  }
  const tracker::RunVerdict& verdict = *judged->verdict;
  const tracker::SeriesVerdict& reading = verdict.answer().series;
  banner.word = report::short_verdict(reading, verdict.verdict);
  banner.tone = verdict_tone(reading, verdict.verdict);
  if (!reading.undetermined) {
    banner.confidence = reading.confidence;
  }
  banner.whose = place_words(*judged);
  banner.finding = report::short_finding(reading, verdict.verdict);
  if (!history.all_have_exited()) {
    banner.outlook = report::short_forecast(reading);
  }
  return banner;
}

}  // namespace tidemark::dashboard
