// SPDX-License-Identifier: Apache-2.0
#include "report/monitor_lines.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "common/records.h"
#include "common/text.h"
#include "common/units.h"

namespace tidemark::report {
namespace {

std::int64_t difference(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::int64_t>(a) - static_cast<std::int64_t>(b);
}

std::string bytes_or_unknown(const std::optional<std::uint64_t>& bytes) {
  return bytes ? format_bytes(*bytes) : "?";
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
    out += fmt::format(" {} of {}", bytes_or_unknown(gpu.used_bytes),
                       bytes_or_unknown(gpu.total_bytes));
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
  switch (kind) {
    case EventKind::kSpawn:
      return "started";
    case EventKind::kExit:
      return "exited";
    case EventKind::kExec:
      return "exec";
    case EventKind::kOomKill:
      return "OOM KILL";
    case EventKind::kGap:
      return "gap";
    case EventKind::kWarnGrowth:
      return "WARNING";
    case EventKind::kReparent:
      return "orphaned";
    case EventKind::kMark:
      return "MARK";
    case EventKind::kGpuLost:
      return "GPU LOST";
    case EventKind::kGuard:
      return "GUARD";
  }
  return "?";
}

std::string rate_text(const Course& course, const TimeFormat& moments) {
  std::string text;
  if (const auto per_s = course.growth_bytes_per_s(); per_s && moments.has_time()) {
    text += fmt::format(", {}/min", format_bytes_delta(std::llround(*per_s * 60.0)));
  }
  if (const auto per_step = course.growth_bytes_per_step()) {
    text += fmt::format(", {}/step", format_bytes_delta(std::llround(*per_step)));
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

std::string loss_text(const LossRecord& loss) {
  return fmt::format("not seen: {} x{}", escape_text(loss.what.text()), loss.count);
}

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
                       bytes_or_unknown(known_rss_bytes(tree)));
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
    if (told_.emplace(loss.what.text()).second) {
      lines.push_back(fmt::format("{}  {}", time_format_.at(tick.t_s), loss_text(loss)));
    }
  }
  return lines;
}

std::string summary_text(const RunSummary& summary, const TimeFormat& moments) {
  if (!summary.has_seen_any()) {
    return "summary: nothing was seen\n";
  }
  std::string out =
      fmt::format("summary: {} in {} {}, {} started, {} exited\n", moments.length(summary.last_s()),
                  summary.ticks(), summary.ticks() == 1 ? "sample" : "samples", summary.starts(),
                  summary.exits());
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
    out += fmt::format("  the kernel's OOM killer ended {} processes\n", summary.oom_kills());
  }
  for (const LossRecord& loss : summary.losses()) {
    out += fmt::format("  {}\n", loss_text(loss));
  }
  return out;
}

}  // namespace tidemark::report
