// SPDX-License-Identifier: Apache-2.0
#include "recording/import/importers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/text.h"
#include "recording/import/import_feed.h"
#include "recording/import/text_input.h"
#include "recording/import/timestamp.h"

namespace tidemark::recording {

namespace {

// More children than this are no recording of a job.
constexpr std::size_t kMaxChildren = 1'000'000;

class MprofImporter final : public RecordingReader {
 public:
  explicit MprofImporter(TextInput input) : input_(std::move(input)) {
    info_.format = "mprof";
    info_.ended_cleanly = true;
    // The command is the first line where it is there: known before the first sample.
    const std::string_view head = input_.peek();
    if (head.starts_with("CMDLINE ")) {
      info_.command = trim(head.substr(8, head.find('\n') - 8));
    }
  }

  const RunInfo& info() const override { return info_; }

  Result<ReadSummary> read(RecordingSink& sink) override {
    auto summary = import_lines(input_, sink, [this](std::string_view line, ImportFeed& feed) {
      return take_line(line, feed);
    });
    if (summary && !children_.empty()) {
      summary->notes.emplace_back(
          "the figures of the main process are taken as its own; recorded with --include-children "
          "they hold the children too");
    }
    return summary;
  }

 private:
  LineResult take_line(std::string_view line, ImportFeed& feed) {
    const auto fields = split_blanks<8>(line);
    const std::string_view kind = fields[0];
    if (kind == "MEM") {
      return take_main(fields[1], fields[2], feed);
    }
    if (kind == "CHLD") {
      return take_child(fields[1], fields[2], feed);
    }
    if (kind.starts_with("CHLD")) {  // "CHLD3 mib t"
      return take_child(kind.substr(4), fields[1], feed);
    }
    if (kind == "FUNC") {
      return take_function(fields[1], fields[3], fields[5], feed);
    }
    return kind == "CMDLINE" ? line_used() : LineResult("it is none of MEM, CHLD, FUNC, CMDLINE");
  }

  LineResult take_main(std::string_view mib, std::string_view time, ImportFeed& feed) {
    const auto bytes = bytes_of_mib(mib);
    const auto t_s = time_.seconds(time);
    if (!bytes || !t_s) {
      return "a MEM line needs a size that is not negative and a time";
    }
    if (*t_s < 0.0 || (feed.has_tick() && *t_s < feed.t_s())) {
      return "its time lies before that of the line above";
    }
    const bool is_first = !feed.has_tick();
    info_.start_wall_ns = time_.start_wall_ns();
    TIDEMARK_TRY(feed.start_tick(*t_s, info_));
    ++tick_;
    if (is_first) {
      ProcessRecord main;
      main.role = Role::kTrainer;
      main.argv = info_.command;
      feed.introduce(std::move(main));
    }
    ProcessSample sample;
    sample.rss_bytes = *bytes;
    feed.add(sample, Role::kTrainer);
    return line_used();
  }

  // mprof writes it right after the line of the main process: its own time is not used.
  LineResult take_child(std::string_view number, std::string_view mib, ImportFeed& feed) {
    const auto child = parse_number<std::uint32_t>(number);
    const auto bytes = bytes_of_mib(mib);
    if (!child || *child > INT32_MAX || !bytes) {
      return "a CHLD line needs a number, a size that is not negative and a time";
    }
    if (!feed.has_tick()) {
      return "a CHLD line comes before the first MEM line";
    }
    if (children_.size() >= kMaxChildren) {
      return Error{Errc::kMalformed,
                   fmt::format("{}: line {}: more than {} children", input_.name(),
                               input_.line_number(), kMaxChildren)};
    }
    // Start time 1 keeps child 0 apart from the main process.
    const ProcessKey key{static_cast<pid_t>(*child), 1};
    const auto [entry, is_new] = children_.try_emplace(key, 0);
    if (entry->second == tick_) {
      return "the same child comes twice";
    }
    entry->second = tick_;
    if (is_new) {
      ProcessRecord process;
      process.key = key;
      process.comm = fmt::format("child {}", *child);
      feed.introduce(std::move(process));
    }
    ProcessSample sample;
    sample.key = key;
    sample.rss_bytes = *bytes;
    feed.add(sample, Role::kOther);
    return line_used();
  }

  // Written when the function returned: both times lie in the past of the current tick.
  LineResult take_function(std::string_view name, std::string_view begin, std::string_view end,
                           ImportFeed& feed) {
    const auto begin_s = feed.has_tick() ? time_.seconds(begin) : std::nullopt;
    const auto end_s = feed.has_tick() ? time_.seconds(end) : std::nullopt;
    if (!begin_s || !end_s) {
      return "a FUNC line needs a name and two times, after the first MEM line";
    }
    feed.add_marker({std::max(*begin_s, 0.0), {}, MarkerKind::kPhaseBegin, 0, std::string(name)});
    feed.add_marker({std::max(*end_s, 0.0), {}, MarkerKind::kPhaseEnd, 0, std::string(name)});
    return line_used();
  }

  TextInput input_;
  RunInfo info_;
  TimeAxis time_{1.0};
  std::uint64_t tick_ = 0;
  std::unordered_map<ProcessKey, std::uint64_t> children_;  // the tick each was last seen in
};

}  // namespace

std::unique_ptr<RecordingReader> open_mprof(TextInput input) {
  return std::make_unique<MprofImporter>(std::move(input));
}

bool looks_like_mprof(std::string_view head) {
  for (const std::string_view start : {"CMDLINE ", "MEM ", "CHLD", "FUNC "}) {
    if (head.starts_with(start)) {
      return true;
    }
  }
  return false;
}

namespace {

constexpr std::size_t kMaxColumns = 16;

struct Columns {
  std::size_t elapsed = 0;
  std::size_t real = 0;
  std::optional<std::size_t> swap;  // psrecord 1.4 and newer
  std::size_t count = 0;
};

// Titles hold blanks, so that their order counts, not their number of words.
std::optional<Columns> parse_header(std::string_view line) {
  constexpr std::array<std::string_view, 11> kTitles{
      "Timestamp",  "Elapsed time", "CPU (%)",    "Real (MB)",   "Virtual (MB)", "Swap (MB)",
      "Read count", "Write count",  "Read bytes", "Write bytes", "Dir size (MB)"};
  std::vector<std::pair<std::size_t, std::string_view>> found;
  for (const std::string_view title : kTitles) {
    if (const std::size_t at = line.find(title); at != std::string_view::npos) {
      found.emplace_back(at, title);
    }
  }
  std::sort(found.begin(), found.end());
  const auto index_of = [&](std::string_view title) -> std::optional<std::size_t> {
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i].second == title) {
        return i;
      }
    }
    return std::nullopt;
  };
  const auto elapsed = index_of("Elapsed time");
  const auto real = index_of("Real (MB)");
  if (!elapsed || !real) {
    return std::nullopt;
  }
  return Columns{*elapsed, *real, index_of("Swap (MB)"), found.size()};
}

class PsrecordImporter final : public RecordingReader {
 public:
  PsrecordImporter(TextInput input, const Columns& columns)
      : input_(std::move(input)), columns_(columns) {
    info_.format = "psrecord";
    info_.ended_cleanly = true;
  }

  const RunInfo& info() const override { return info_; }

  Result<ReadSummary> read(RecordingSink& sink) override {
    return import_lines(input_, sink, [this](std::string_view line, ImportFeed& feed) {
      return take_line(line, feed);
    });
  }

 private:
  LineResult take_line(std::string_view line, ImportFeed& feed) {
    const auto fields = split_blanks<kMaxColumns>(line);
    if (fields[columns_.count - 1].empty()) {
      return "it has fewer fields than the header";
    }
    const auto t_s = time_.seconds(fields[columns_.elapsed]);
    const auto real = bytes_of_mib(fields[columns_.real]);
    const auto swap = columns_.swap ? bytes_of_mib(fields[*columns_.swap]) : std::nullopt;
    if (!t_s || !real || (columns_.swap && !swap)) {
      return "its time or its memory is not a number that makes sense";
    }
    if (*t_s < 0.0 || (feed.has_tick() && *t_s < feed.t_s())) {
      return "its time lies before that of the line above";
    }
    const bool is_first = !feed.has_tick();
    TIDEMARK_TRY(feed.start_tick(*t_s, info_));
    if (is_first) {
      ProcessRecord process;
      process.role = Role::kTrainer;
      feed.introduce(std::move(process));
    }
    ProcessSample sample;
    sample.rss_bytes = *real;
    sample.swap_bytes = swap;
    feed.add(sample, Role::kTrainer);
    return line_used();
  }

  TextInput input_;
  Columns columns_;
  RunInfo info_;
  TimeAxis time_{1.0};
};

}  // namespace

Result<std::unique_ptr<RecordingReader>> open_psrecord(TextInput input) {
  TextInput::Line line;
  const bool has_line = input.next_line(line);
  const auto columns = has_line ? parse_header(line.text) : std::nullopt;
  if (!columns) {
    return Error{
        Errc::kMalformed,
        fmt::format("{}: the header of a psrecord log needs 'Elapsed time' and 'Real (MB)'",
                    input.name())};
  }
  return std::unique_ptr<RecordingReader>(new PsrecordImporter(std::move(input), *columns));
}

bool looks_like_psrecord(std::string_view head) {
  return head.starts_with('#') &&
         head.substr(0, head.find('\n')).find("Elapsed time") != std::string_view::npos;
}

}  // namespace tidemark::recording
