// SPDX-License-Identifier: Apache-2.0
#include "recording/import/importers.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "common/text.h"
#include "recording/import/csv_row.h"
#include "recording/import/import_feed.h"

namespace tidemark::recording {
namespace {

// More processes than this are no recording of a job. Each takes about 1.5 KB where it is judged.
constexpr std::size_t kMaxProcesses = 100'000;
constexpr std::size_t kMaxUnknownRoles = 10;
constexpr int kMaxCommentLines = 100;
// Rows of one sample of the tree may each have their own time. The next sample then begins with a
// pid that comes again, or after a pause: kPausePart of the time after which pids come again, or
// kFirstPauseS while that is unknown.
constexpr double kPausePart = 0.75;
constexpr double kFirstPauseS = 0.1;

struct TransparentHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>{}(text);
  }
};

GroupSample group_of(const CsvRow& row) {
  GroupSample sum;
  sum.processes = static_cast<std::uint32_t>(row.processes.value_or(0));
  sum.rss_bytes = row.sample.rss_bytes.value_or(0);
  sum.swap_bytes = row.sample.swap_bytes.value_or(0);
  sum.pss_bytes = row.sample.pss_bytes;
  sum.footprint_bytes = row.footprint_bytes;
  return sum;
}

ProcessSample sample_of(const CsvRow& row, const ProcessKey& key) {
  ProcessSample sample = row.sample;
  sample.key = key;
  // A footprint without its parts is kept as anonymous memory, so that it stays the footprint.
  if (row.footprint_bytes && !sample.rss_anon_bytes && !sample.rss_shmem_bytes) {
    const std::uint64_t swap = sample.swap_bytes.value_or(0);
    sample.rss_anon_bytes = *row.footprint_bytes - std::min(swap, *row.footprint_bytes);
    sample.rss_shmem_bytes = 0;
  }
  return sample;
}

class CsvImporter final : public RecordingReader {
 public:
  CsvImporter(TextInput input, CsvHeader header)
      : input_(std::move(input)), rows_(std::move(header)) {
    info_.format = "csv";
    info_.time_is_steps = !rows_.header()[CsvField::kTime];
    info_.ended_cleanly = true;
    const CsvHeader& columns = rows_.header();
    may_have_own_times_ =
        columns[CsvField::kTime] && columns[CsvField::kPid] && !columns[CsvField::kScope];
  }

  const RunInfo& info() const override { return info_; }

  Result<ReadSummary> read(RecordingSink& sink) override {
    auto summary = import_lines(input_, sink, [this](std::string_view line, ImportFeed& feed) {
      return take_line(line, feed);
    });
    if (summary) {
      summary->notes = rows_.notes();
      if (has_own_times_) {
        summary->notes.emplace_back(
            "rows have times of their own: a sample of the tree ends where a pid comes again, or "
            "after a pause");
      }
      for (const std::string& role : unknown_roles_) {
        summary->notes.push_back(fmt::format("role '{}' is unknown: taken as other", role));
      }
    }
    return summary;
  }

 private:
  struct Known {
    std::uint64_t identity = 0;  // hash of name, role and rank: another one means exec
    std::uint64_t tick = 0;      // last seen in
    double t_s = 0.0;            // last seen at
    Role role = Role::kOther;
  };

  LineResult take_line(std::string_view line, ImportFeed& feed) {
    if (const char* problem = rows_.parse(line, row_)) {
      return problem;
    }
    if (feed.has_tick() && row_.t_s < last_row_s_) {
      return "its time lies before that of the row above (sort the file by time)";
    }
    const Status status =
        row_.scope == CsvScope::kProcess ? take_process(row_, feed) : take_group(row_, feed);
    return status ? line_used() : status.error();
  }

  Status take_group(const CsvRow& row, ImportFeed& feed) {
    TIDEMARK_TRY(start_tick_for(row, feed, /*is_repeated=*/false));
    if (row.scope == CsvScope::kTree) {
      feed.set_tree(group_of(row));
    } else {
      feed.add_role(role_of(row), group_of(row));
    }
    return ok();
  }

  Status take_process(const CsvRow& row, ImportFeed& feed) {
    if (known_.size() >= kMaxProcesses) {
      return Error{Errc::kMalformed,
                   fmt::format("{}: line {}: more than {} processes; is the column of pids another "
                               "figure?",
                               input_.name(), input_.line_number(), kMaxProcesses)};
    }
    const ProcessKey key = key_of(row);
    const auto [entry, is_new] = known_.try_emplace(key);
    Known& known = entry->second;
    // A process cannot be seen twice at once: its second row begins another tick of the same time.
    const bool is_repeated = !is_new && known.tick == tick_;
    if (!is_new && row.t_s > known.t_s) {
      period_s_ = std::min(period_s_.value_or(row.t_s - known.t_s), row.t_s - known.t_s);
    }
    TIDEMARK_TRY(start_tick_for(row, feed, is_repeated));
    known.tick = tick_;
    known.t_s = row.t_s;
    const std::uint64_t identity = identity_of(row);
    if (is_new || known.identity != identity) {
      known.identity = identity;
      known.role = role_of(row);
      feed.introduce(record_of(row, key, known.role));
    }
    feed.add(sample_of(row, key), known.role);
    return ok();
  }

  Status start_tick_for(const CsvRow& row, ImportFeed& feed, bool is_repeated) {
    if (!feed.has_tick() || is_repeated || begins_next_sample(row)) {
      ++tick_;
      if (!feed.has_tick()) {
        info_.start_wall_ns = rows_.start_wall_ns();
      }
      TIDEMARK_TRY(feed.start_tick(row.t_s, info_));
    }
    has_own_times_ = has_own_times_ || row.t_s > feed.t_s();
    last_row_s_ = row.t_s;
    if (row.step) {
      feed.set_step(*row.step);
    }
    if (row.epoch) {
      feed.set_epoch(*row.epoch);
    }
    return ok();
  }

  bool begins_next_sample(const CsvRow& row) const {
    const double pause_s = period_s_ ? kPausePart * *period_s_ : kFirstPauseS;
    return row.t_s - last_row_s_ > (may_have_own_times_ ? pause_s : 0.0);
  }

  // Without pids, each name is a series; without names, there is one series.
  ProcessKey key_of(const CsvRow& row) {
    if (row.pid) {
      return {static_cast<pid_t>(*row.pid),
              static_cast<std::uint64_t>(row.start_ticks.value_or(0))};
    }
    if (row.name.empty()) {
      return {};
    }
    const auto known = numbers_of_names_.find(row.name);
    if (known != numbers_of_names_.end()) {
      return {0, known->second};
    }
    const std::uint64_t number = numbers_of_names_.size() + 1;
    numbers_of_names_.emplace(row.name, number);
    return {0, number};
  }

  static std::uint64_t identity_of(const CsvRow& row) {
    const TransparentHash hash;
    return hash(row.name) * 31 + hash(row.role) * 7 +
           static_cast<std::uint64_t>(row.rank.value_or(-1));
  }

  // A single series without a role is the trainer: it is the process that was worth logging.
  Role role_of(const CsvRow& row) {
    if (row.role.empty()) {
      const bool is_only_series = !row.pid && row.name.empty();
      return is_only_series ? Role::kTrainer : Role::kOther;
    }
    const auto role = role_from_name(row.role);
    if (!role && unknown_roles_.size() < kMaxUnknownRoles) {
      unknown_roles_.insert(shorten(escape_text(row.role), 40));
    }
    return role.value_or(Role::kOther);
  }

  static ProcessRecord record_of(const CsvRow& row, const ProcessKey& key, Role role) {
    ProcessRecord process;
    process.key = key;
    process.ppid = static_cast<pid_t>(row.ppid.value_or(0));
    process.role = role;
    if (row.rank) {
      process.rank = static_cast<int>(*row.rank);
    }
    process.comm = row.name;
    return process;
  }

  TextInput input_;
  CsvRowParser rows_;
  RunInfo info_;
  CsvRow row_;
  std::uint64_t tick_ = 0;
  bool may_have_own_times_ = false;
  bool has_own_times_ = false;
  double last_row_s_ = 0.0;
  std::optional<double> period_s_;  // the shortest after which a process came again
  std::unordered_map<ProcessKey, Known> known_;
  std::unordered_map<std::string, std::uint64_t, TransparentHash, std::equal_to<>>
      numbers_of_names_;
  std::set<std::string> unknown_roles_;
};

}  // namespace

Result<std::unique_ptr<RecordingReader>> open_csv(TextInput input) {
  TextInput::Line line;
  for (int i = 0; i < kMaxCommentLines && input.next_line(line); ++i) {
    std::string_view text = trim(line.text);
    const bool is_comment = text.starts_with('#');
    if (text.empty() && !line.is_too_long) {
      continue;
    }
    text.remove_prefix(is_comment ? 1 : 0);
    auto header = parse_csv_header(text, input.name());
    if (header) {
      return std::unique_ptr<RecordingReader>(
          new CsvImporter(std::move(input), std::move(*header)));
    }
    if (!is_comment) {
      return header.error();
    }
  }
  if (input.error()) {
    return *input.error();
  }
  return Error{Errc::kMalformed, fmt::format("{} has no CSV header", input.name())};
}

}  // namespace tidemark::recording
