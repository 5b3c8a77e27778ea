// SPDX-License-Identifier: Apache-2.0
#include "recording/import/psrecord_importer.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "recording/import/import_lines.h"
#include "recording/import/text_fields.h"
#include "recording/import/timestamp.h"

namespace tidemark::recording {
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
