// SPDX-License-Identifier: Apache-2.0
#include "report/monitor_lines.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/records.h"
#include "common/text.h"
#include "common/units.h"
#include "report/loss_text.h"

namespace tidemark::report {
namespace {

std::int64_t difference(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::int64_t>(a) - static_cast<std::int64_t>(b);
}

// Unknown figures are imported ones: then another one, under its name, is better than none.
std::string memory_words(const std::optional<std::uint64_t>& footprint_bytes,
                         const std::optional<std::uint64_t>& rss_bytes,
                         const std::optional<std::uint64_t>& pss_bytes) {
  if (footprint_bytes) {
    return format_bytes(*footprint_bytes);
  }
  return rss_bytes   ? "rss " + format_bytes(*rss_bytes)
         : pss_bytes ? "pss " + format_bytes(*pss_bytes)
                     : "?";
}

std::string memory_words(const ProcessSample& sample) {
  return memory_words(sample.footprint_bytes(), sample.rss_bytes, sample.pss_bytes);
}

std::string memory_words(const GroupSample& sum) {
  return memory_words(sum.footprint_bytes, known_rss_bytes(sum), sum.pss_bytes);
}

const ProcessSample* find_sample(const Tick& tick, const ProcessKey& key) {
  const auto it = std::find_if(tick.processes.begin(), tick.processes.end(),
                               [&](const ProcessSample& sample) { return sample.key == key; });
  return it == tick.processes.end() ? nullptr : &*it;
}

void append_system(std::string& out, const SystemSample& system) {
  if (system.total_bytes && system.available_bytes) {
    const std::uint64_t used =
        *system.total_bytes - std::min(*system.total_bytes, *system.available_bytes);
    out += fmt::format("  system {} used, {} available", format_bytes(used),
                       format_bytes(*system.available_bytes));
  }
  if (system.dev_shm_unheld_bytes.value_or(0) > 0) {
    out += fmt::format("  /dev/shm {} held by nobody", format_bytes(*system.dev_shm_unheld_bytes));
  }
}

void append_gpu(std::string& out, const GpuSample& gpu) {
  out += "  " + gpu_label(gpu.index);
  if (gpu.is_lost) {
    out += " LOST";
  } else {
    out += fmt::format(" {} of {}", format_bytes(gpu.used_bytes), format_bytes(gpu.total_bytes));
  }
  if (gpu.busy_percent) {
    out += fmt::format(", {} % busy", *gpu.busy_percent);
  }
  if (gpu.age_s > 0.0) {
    out += fmt::format(", {} old", format_duration(gpu.age_s));
  }
}

std::string pid_list(const std::vector<pid_t>& pids) {
  constexpr std::size_t kMost = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(pids.size(), kMost); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", pids[i]);
  }
  return pids.size() > kMost ? text + ", ..." : text;
}

std::string_view verb_of(EventKind kind) {
  static constexpr std::array<std::string_view, 10> kVerbs{
      "started", "exited",   "exec", "OOM KILL", "gap",
      "WARNING", "orphaned", "MARK", "GPU LOST", "GUARD"};
  return kVerbs[static_cast<std::size_t>(kind)];
}

std::string rate_text(const Course& course, const TimeFormat& moments) {
  constexpr RateFormat kSignedRate{.has_sign = true, .has_fixed_unit = true};
  std::string text;
  if (const auto per_s = course.growth_bytes_per_s(); per_s && moments.has_time()) {
    text += ", " + format_rate(*per_s, RateUnit::kSecond, kSignedRate);
  }
  if (const auto per_step = course.growth_bytes_per_step()) {
    text += ", " + format_rate(*per_step, RateUnit::kStep, kSignedRate);
  }
  return text;
}

std::string course_text(const Course& course, const TimeFormat& moments, bool with_rate = true) {
  const std::string peak =
      fmt::format("peak {} at {}", format_bytes(course.peak_bytes), moments.at(course.peak_s));
  if (course.ended) {
    return fmt::format("{} -> gone since {}, {}", format_bytes(course.first_bytes),
                       moments.at(course.last_s), peak);
  }
  return fmt::format("{} -> {}, {}, growth {}{}", format_bytes(course.first_bytes),
                     format_bytes(course.last_bytes), peak,
                     format_bytes_delta(course.growth_bytes()),
                     with_rate ? rate_text(course, moments) : "");
}

std::string not_seen_text(const LossRecord& loss) {
  return "not seen: " + loss_text(loss.what.text(), loss.count);
}

constexpr std::size_t kAlike = 4;  // so many are shown as one and the number of the others

struct TreeRow {
  const ProcessSample* sample;
  const ProcessRecord* record;  // nullptr: unknown
};

class TreeText {
 public:
  TreeText(const Tick& tick, const ProcessLookup& lookup) {
    std::map<pid_t, bool> members;
    for (const ProcessSample& sample : tick.processes) {
      members[sample.key.pid] = true;
    }
    for (const ProcessSample& sample : tick.processes) {
      const ProcessRecord* record = lookup(sample.key);
      // Imported series have no pid: 0 is nobody's parent.
      const bool has_parent = record != nullptr && record->ppid > 0 &&
                              record->ppid != sample.key.pid && members.contains(record->ppid);
      (has_parent ? children_[record->ppid] : roots_).push_back({&sample, record});
    }
  }

  std::string text() {
    put("PID", "ROLE", "FOOTPRINT", "RSS", "COMMAND");
    put_rows(roots_, 0);
    return std::move(out_);
  }

 private:
  static constexpr std::size_t kDeepest = 64;  // a table read in pieces could hold a cycle

  void put(std::string_view pid, std::string_view role, std::string_view footprint,
           std::string_view rss, std::string_view command) {
    out_ += fmt::format("{:<20} {:<18} {:>10} {:>10}  {}\n", pid, role, footprint, rss, command);
  }

  void put_row(const TreeRow& row, std::size_t depth) {
    const std::string role = row.record == nullptr ? "?"
                             : row.record->rank    ? fmt::format("rank {}", *row.record->rank)
                                                   : std::string(role_name(row.record->role));
    const std::string command = row.record == nullptr       ? "?"
                                : !row.record->argv.empty() ? row.record->argv
                                : !row.record->comm.empty() ? "[" + row.record->comm + "]"
                                                            : "?";
    const pid_t pid = row.sample->key.pid;
    put(std::string(2 * std::min<std::size_t>(depth, 6), ' ') +
            (pid > 0 ? std::to_string(pid) : "?"),
        role, row.sample->state == 'Z' ? "zombie" : format_bytes(row.sample->footprint_bytes()),
        format_bytes(row.sample->rss_bytes), shorten(escape_text(command), 80));
  }

  bool is_leaf(const TreeRow& row) const { return !children_.contains(row.sample->key.pid); }

  bool alike(const TreeRow& a, const TreeRow& b) const {
    return a.record != nullptr && b.record != nullptr && is_leaf(a) && is_leaf(b) &&
           a.record->role == b.record->role && a.record->rank == b.record->rank &&
           a.record->argv == b.record->argv &&
           (!a.record->argv.empty() || a.record->comm == b.record->comm) &&
           a.sample->state != 'Z' && b.sample->state != 'Z';
  }

  void put_children(pid_t parent, std::size_t depth) {
    const auto found = children_.find(parent);
    if (found != children_.end() && depth <= kDeepest) {
      put_rows(found->second, depth);
    }
  }

  void put_rows(const std::vector<TreeRow>& rows, std::size_t depth) {
    for (std::size_t i = 0; i < rows.size();) {
      std::size_t end = i + 1;
      while (end < rows.size() && alike(rows[i], rows[end])) {
        ++end;
      }
      put_row(rows[i], depth);
      if (end - i >= kAlike) {
        put_others(rows, i + 1, end, depth);
      } else {
        end = i + 1;
        put_children(rows[i].sample->key.pid, depth + 1);
      }
      i = end;
    }
  }

  void put_others(const std::vector<TreeRow>& rows, std::size_t begin, std::size_t end,
                  std::size_t depth) {
    const pid_t last = rows[end - 1].sample->key.pid;
    put(std::string(2 * std::min<std::size_t>(depth, 6), ' ') + "...", "", "", "",
        fmt::format("and {} more like it, {}{}", end - begin, range_text(rows, begin, end),
                    last > 0 ? fmt::format(", up to pid {}", last) : ""));
  }

  // Of their footprints; of their RSS where nobody's footprint is known.
  static std::string range_text(const std::vector<TreeRow>& rows, std::size_t begin,
                                std::size_t end) {
    std::optional<std::pair<std::uint64_t, std::uint64_t>> footprint;
    std::optional<std::pair<std::uint64_t, std::uint64_t>> rss;
    const auto widen = [](auto& range, const std::optional<std::uint64_t>& bytes) {
      if (bytes) {
        range = range ? std::pair(std::min(range->first, *bytes), std::max(range->second, *bytes))
                      : std::pair(*bytes, *bytes);
      }
    };
    for (std::size_t i = begin; i < end; ++i) {
      widen(footprint, rows[i].sample->footprint_bytes());
      widen(rss, rows[i].sample->rss_bytes);
    }
    const auto& range = footprint ? footprint : rss;
    return range ? fmt::format("{}{} to {} each", footprint ? "" : "rss ",
                               format_bytes(range->first), format_bytes(range->second))
                 : "? each";
  }

  std::vector<TreeRow> roots_;
  std::map<pid_t, std::vector<TreeRow>> children_;
  std::string out_;
};

}  // namespace

std::string TickLines::tree_part(const GroupSample& tree) {
  const auto change = [](Past& past, const std::optional<std::uint64_t>& bytes) -> std::string {
    if (!bytes) {
      return "";
    }
    const std::uint64_t first = past.first_bytes.value_or(*bytes);
    const std::uint64_t previous = past.first_bytes ? past.previous_bytes : *bytes;
    past = {first, *bytes};
    return fmt::format(" ({} since start, {} since last)",
                       format_bytes_delta(difference(*bytes, first)),
                       format_bytes_delta(difference(*bytes, previous)));
  };
  const std::string footprint_change = change(footprint_, tree.footprint_bytes);
  const std::string rss_change = change(rss_, known_rss_bytes(tree));
  const std::string pss_change = change(pss_, tree.pss_bytes);
  const std::string words = memory_words(tree);
  if (tree.footprint_bytes) {
    return fmt::format("{}{}{}  rss {}", tree.footprint_held ? "~" : "", words, footprint_change,
                       format_bytes(known_rss_bytes(tree)));
  }
  return words + (known_rss_bytes(tree) ? rss_change : pss_change);
}

std::string TickLines::line(const Tick& tick, const ProcessKey& trainer) {
  std::string out = time_format_.at(tick.t_s);
  if (tick.step && time_format_.has_time()) {
    out += fmt::format("  step {}", *tick.step);
  }
  out += "  tree " + tree_part(tick.tree);
  const ProcessSample* sample = find_sample(tick, trainer);
  const bool has_trainer =
      std::any_of(tick.roles.begin(), tick.roles.end(),
                  [](const RoleSample& role) { return role.role == Role::kTrainer; });
  if (sample != nullptr) {
    out +=
        fmt::format("  {}{} {}", has_trainer ? "trainer" : "rank",
                    trainer.pid > 0 ? fmt::format("[{}]", trainer.pid) : "", memory_words(*sample));
  }
  for (const RoleSample& role : tick.roles) {
    const bool is_the_trainer = role.role == Role::kTrainer && role.sum.processes == 1;
    if (!(is_the_trainer && sample != nullptr)) {
      out += fmt::format("  {} x{} {}", role_name(role.role), role.sum.processes,
                         memory_words(role.sum));
    }
  }
  if (tick.system) {
    append_system(out, *tick.system);
  }
  for (const GpuSample& gpu : tick.gpus) {
    append_gpu(out, gpu);
  }
  return out;
}

std::vector<std::string> event_lines(const Tick& tick, const ProcessLookup& lookup,
                                     const TimeFormat& moments) {
  constexpr std::size_t kTogether = 3;
  std::map<std::pair<EventKind, Role>, std::vector<const EventRecord*>> groups;
  for (const EventRecord& event : tick.events) {
    const ProcessRecord* record = lookup(event.key);
    groups[{event.kind, record == nullptr ? Role::kOther : record->role}].push_back(&event);
  }
  std::vector<std::string> lines;
  const std::string time = moments.at(tick.t_s);
  for (const auto& [group, events] : groups) {
    const auto& [kind, role] = group;
    const bool countable = kind == EventKind::kSpawn || kind == EventKind::kExit;
    if (countable && events.size() > kTogether) {
      std::vector<pid_t> pids;
      std::transform(events.begin(), events.end(), std::back_inserter(pids),
                     [](const EventRecord* event) { return event->key.pid; });
      lines.push_back(fmt::format("{}  {}  {} x{}  pids {}", time, verb_of(kind), role_name(role),
                                  events.size(), pid_list(pids)));
      continue;
    }
    for (const EventRecord* event : events) {
      const std::string who = event->key.pid > 0 ? fmt::format("  pid {}", event->key.pid) : "";
      lines.push_back(fmt::format("{}  {}{}  {}", time, verb_of(kind), who,
                                  shorten(escape_text(event->detail), 160)));
    }
  }
  return lines;
}

std::vector<std::string> LossLines::lines(const Tick& tick) {
  std::vector<std::string> lines;
  for (const LossRecord& loss : tick.losses) {
    if (printed_.emplace(loss.what.text()).second) {
      lines.push_back(fmt::format("{}  {}", time_format_.at(tick.t_s), not_seen_text(loss)));
    }
  }
  return lines;
}

std::string summary_text(const RunSummary& summary, const TimeFormat& moments) {
  if (!summary.has_seen_any()) {
    return "summary: nothing was seen\n";
  }
  std::string out =
      fmt::format("summary: {} in {}, {} started, {} exited\n", moments.length(summary.last_s()),
                  format_count(summary.ticks(), "sample"), summary.starts(), summary.exits());
  const bool has_footprint = summary.footprint().seen;
  const auto add = [&](std::string_view what, const Course& course, bool with_rate) {
    out += fmt::format("  {:<22} {}\n", what,
                       course.seen ? course_text(course, moments, with_rate) : "?");
  };
  if (has_footprint) {
    add("tree footprint", summary.footprint(), true);
  }
  if (has_footprint || summary.rss().seen || !summary.pss().seen) {
    add("tree rss", summary.rss(), true);
  } else {
    add("tree pss", summary.pss(), true);
  }
  for (const auto& role : summary.roles()) {
    if (role.memory.seen) {
      add(fmt::format("{} x{}{}", role_name(role.role), role.most_processes,
                      has_footprint ? "" : " rss"),
          role.memory, role.steady);
    }
  }
  if (summary.oom_kills() > 0) {
    out += fmt::format("  the kernel's OOM killer ended {}\n",
                       format_count(summary.oom_kills(), "process", "processes"));
  }
  for (const LossRecord& loss : summary.losses()) {
    out += fmt::format("  {}\n", not_seen_text(loss));
  }
  return out;
}

std::string tree_text(const Tick& tick, const ProcessLookup& lookup) {
  return TreeText(tick, lookup).text();
}

}  // namespace tidemark::report
