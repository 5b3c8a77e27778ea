// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/recording_sink.h"
#include "common/result.h"
#include "recording/import/text_input.h"
#include "recording/reader.h"

namespace tidemark::recording {

// Counts lines that cannot be used, and says when there are too many to go on: more than 10 and
// more than 1 % of the lines so far.
class BadLineCounter {
 public:
  // `unit` is what the file is made of, when that is not lines.
  BadLineCounter(std::string name, ReadSummary& summary, std::string_view unit = "line")
      : name_(std::move(name)), summary_(summary), unit_(unit) {}

  void count_line() { ++summary_.lines; }
  // An Error that names the file, the line and the reason when this was one too many.
  Status bad(std::uint64_t line_number, std::string_view reason);
  // Bad lines since the last call.
  std::uint64_t take_new();

 private:
  std::string name_;
  ReadSummary& summary_;
  std::string_view unit_;
  std::uint64_t reported_ = 0;
};

// Builds the ticks of an imported series and delivers them. Sums of the
// tree and of each role that the file does not have are computed here.
//
// Where the parts of the footprint of a process are unknown, so is the footprint of its group. RSS,
// or PSS, is never called a footprint.
class ImportFeed {
 public:
  ImportFeed(RecordingSink& sink, BadLineCounter& bad_lines, ReadSummary& summary)
      : sink_(sink), bad_lines_(bad_lines), summary_(summary) {}

  // Delivers the tick before, if there is one, and starts the next. Times do not go back. The first
  // call hands `info` to the sink.
  Status start_tick(double t_s, const RunInfo& info);
  bool has_tick() const { return has_tick_; }
  double t_s() const { return tick_.t_s; }

  // Of the current tick.
  void introduce(ProcessRecord process);
  void add(const ProcessSample& sample, Role role);
  void set_tree(const GroupSample& sum) { tree_ = sum; }
  void add_role(Role role, const GroupSample& sum) { roles_.push_back({role, sum}); }
  // These two hold until they are set again. A new epoch is also marked.
  void set_step(std::int64_t step) { tick_.step = step; }
  void set_epoch(std::int64_t epoch);
  void add_marker(MarkerRecord marker) { tick_.markers.push_back(std::move(marker)); }

  // Delivers the last tick and the end. Without any tick: an Error that `name` holds no samples.
  Status finish(const std::string& name);

 private:
  Status deliver();
  void sum_up();

  RecordingSink& sink_;
  BadLineCounter& bad_lines_;
  ReadSummary& summary_;
  Tick tick_;
  std::vector<Role> sample_roles_;   // beside tick_.processes
  std::optional<GroupSample> tree_;  // these two: as the file gave them
  std::vector<RoleSample> roles_;
  bool has_tick_ = false;
};

// What became of a line: nullptr when it was used, why not when it was bad (a string literal), an
// Error when the whole import has to stop.
using LineResult = Result<const char*>;
inline LineResult line_used() { return static_cast<const char*>(nullptr); }

// Hands each line to `take_line(text, feed)` and counts the bad ones. Empty lines and those that
// start with '#' are not lines.
template <typename TakeLine>
Result<ReadSummary> import_lines(TextInput& input, RecordingSink& sink, TakeLine take_line) {
  ReadSummary summary;
  BadLineCounter bad_lines(input.name(), summary);
  ImportFeed feed(sink, bad_lines, summary);
  TextInput::Line line;
  while (input.next_line(line)) {
    if (!line.is_too_long && (line.text.empty() || line.text.front() == '#')) {
      continue;
    }
    bad_lines.count_line();
    const LineResult result =
        line.is_too_long ? LineResult("it is too long") : take_line(line.text, feed);
    if (!result) {
      return result.error();
    }
    if (*result == nullptr) {
      continue;
    }
    TIDEMARK_TRY(bad_lines.bad(input.line_number(), *result));
  }
  if (input.error()) {
    return *input.error();
  }
  TIDEMARK_TRY(feed.finish(input.name()));
  return summary;
}

}  // namespace tidemark::recording
