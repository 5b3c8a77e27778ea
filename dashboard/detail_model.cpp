// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "common/text.h"
#include "common/units.h"
#include "dashboard/model_builder.h"
#include "report/track_words.h"
#include "tracker/curve/judge.h"

namespace tidemark::dashboard {
namespace {

std::string_view state_words(char state) {
  switch (state) {
    case 'R':
      return "running";
    case 'S':
      return "sleeping";
    case 'D':
      return "waiting for a device";
    case 'T':
    case 't':
      return "stopped";
    case 'Z':
      return "zombie";
    default:
      return "in an unknown state";
  }
}

std::string memory_line(const ProcessSample& sample) {
  std::string text =
      fmt::format("memory  anon {}, file {}, shmem {}, swap {}, peak rss {}",
                  format_bytes(sample.rss_anon_bytes), format_bytes(sample.rss_file_bytes),
                  format_bytes(sample.rss_shmem_bytes), format_bytes(sample.swap_bytes),
                  format_bytes(sample.hwm_bytes));
  if (sample.pss_bytes) {
    text += fmt::format("; pss {}, uss {}, read {} ago", format_bytes(sample.pss_bytes),
                        format_bytes(sample.uss_bytes),
                        format_duration(sample.pss_age_s.value_or(0.0)));
  }
  return text;
}

// As the verdict on the run has it; of the smaller processes on its own curve alone.
tracker::SeriesVerdict reading_of(const RunHistory& history,
                                  const std::optional<tracker::JudgedRun>& judged,
                                  const ProcessHistory& process) {
  tracker::Options options;
  if (history.info().limit_bytes) {
    options.limit_bytes = static_cast<double>(*history.info().limit_bytes);
  }
  if (judged) {
    options.epoch_steps = judged->run.epoch_steps;
    options.epoch_seconds = judged->run.epoch_seconds;
  }
  if (judged && judged->verdict) {
    for (const tracker::TrackVerdict& reading : judged->verdict->tracks) {
      const tracker::Track& track = judged->run.tracks[reading.track];
      if (track.kind == tracker::TrackKind::kProcess && track.key == process.record.key) {
        return reading.series;
      }
    }
  }
  return tracker::judge(process.footprint, options);
}

DetailModel process_detail(const RunHistory& history,
                           const std::optional<tracker::JudgedRun>& judged,
                           const ProcessHistory& process) {
  const ProcessRecord& record = process.record;
  DetailModel detail;
  detail.title = name_of(record.role, record.key.pid);
  if (!process.footprint.empty()) {
    const tracker::SeriesVerdict reading = reading_of(history, judged, process);
    detail.lines.push_back(fmt::format("verdict {}: {}",
                                       report::short_verdict(reading, reading.verdict),
                                       report::short_finding(reading, reading.verdict)));
    for (const tracker::Cell& cell : process.footprint.cells()) {
      detail.curve.push_back(cell.mean_bytes());
    }
  }
  detail.lines.push_back(memory_line(process.sample));
  std::string facts =
      fmt::format("process {}, ", history.all_have_exited() ? std::string_view("ended")
                                                            : state_words(process.sample.state));
  if (record.ppid > 0) {
    facts += fmt::format("parent {}, ", record.ppid);
  }
  if (process.sample.threads) {
    facts += format_count(*process.sample.threads, "thread") + ", ";
  }
  facts += record.started_s > history.first_s()
               ? "started at " + history.time_format(record.started_s)
               : "in the first sample";
  if (history.info().limit_bytes) {
    facts += fmt::format("; limit {} ({})", format_bytes(*history.info().limit_bytes),
                         shorten(escape_text(history.info().limit_source), 40));
  }
  detail.lines.push_back(std::move(facts));
  const std::string command = command_of(record);
  detail.lines.push_back("command " + (command.empty() ? "?" : escape_text(command)));
  return detail;
}

DetailModel role_detail(const RunHistory& history, const TreeRow& row) {
  DetailModel detail;
  detail.title = row.name;
  std::uint64_t least = UINT64_MAX;
  std::uint64_t most = 0;
  for (const auto& [key, process] : history.processes()) {
    const auto bytes = bytes_of(process.sample);
    if (process.record.role == row.id.role && bytes) {
      least = std::min(least, *bytes);
      most = std::max(most, *bytes);
    }
  }
  detail.lines.push_back(fmt::format("together {} rss, {} with shared pages counted once",
                                     format_bytes(row.rss_bytes),
                                     format_bytes(row.footprint_bytes)));
  if (least <= most) {
    detail.lines.push_back(fmt::format("each     {} to {} {}", format_bytes(least),
                                       format_bytes(most),
                                       row.footprint_bytes ? "footprint" : "rss"));
  }
  detail.lines.emplace_back(row.is_open ? "enter closes it" : "enter shows its processes");
  return detail;
}

}  // namespace

std::optional<DetailModel> build_detail(const RunHistory& history,
                                        const std::optional<tracker::JudgedRun>& judged,
                                        const TreeModel& tree) {
  if (tree.selected >= tree.rows.size()) {
    return std::nullopt;
  }
  const TreeRow& row = tree.rows[tree.selected];
  if (row.is_role) {
    return role_detail(history, row);
  }
  const auto process = history.processes().find(row.id.key);
  return process == history.processes().end()
             ? std::nullopt
             : std::optional(process_detail(history, judged, process->second));
}

}  // namespace tidemark::dashboard
