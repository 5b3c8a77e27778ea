// SPDX-License-Identifier: Apache-2.0
#include "tests/support/trace_dump.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "common/text.h"

namespace tidemark::tests {
namespace {

using reader::AgeBucket;
using reader::LiveScan;
using reader::LiveSite;
using reader::ReadLosses;
using reader::SiteCounts;
using reader::TraceIdentity;
using reader::TraceLosses;
using reader::TraceModule;
using reader::TraceSnapshot;

const char* stage_name(wire::Stage stage) {
  switch (stage) {
    case wire::Stage::kSettingUp:
      return "setting up";
    case wire::Stage::kRecording:
      return "recording";
    case wire::Stage::kReplaced:
      return "replaced";
    case wire::Stage::kExited:
      return "exited";
  }
  return "unknown";
}

using Out = std::back_insert_iterator<std::string>;

std::string epoch_text(std::uint32_t epoch) {
  return (epoch & wire::kEpochIsStep) != 0 ? fmt::format("step {}", epoch & ~wire::kEpochIsStep)
                                           : fmt::format("{} s", epoch);
}

void dump_process(Out out, const TraceSnapshot& snapshot) {
  const TraceIdentity& id = snapshot.identity;
  fmt::format_to(out,
                 "process pid={} parent={} start_ticks={} namespace={} created_ns={} forked={}\n",
                 id.pid, id.parent_pid, id.start_ticks, id.pid_namespace, id.created_ns, id.forked);
  fmt::format_to(out, "state stage={} mode={} sample_every={} epoch=\"{}\" nodes={}\n",
                 stage_name(snapshot.stage), trace_mode_name(snapshot.mode),
                 snapshot.sample_every_bytes, epoch_text(snapshot.epoch), snapshot.nodes);
  fmt::format_to(out, "memory file={} private={}\n", snapshot.file_bytes, snapshot.private_bytes);
  if (!snapshot.reason.empty()) {
    fmt::format_to(out, "limited {}\n", escape_text(snapshot.reason));
  }
  if (snapshot.extend_errno != 0) {
    fmt::format_to(out, "file cannot grow: errno {}\n", snapshot.extend_errno);
  }
}

void dump_losses(Out out, std::initializer_list<std::pair<const char*, std::uint64_t>> losses) {
  for (const auto& [name, count] : losses) {
    if (count != 0) {
      fmt::format_to(out, "lost {}={}\n", name, count);
    }
  }
}

void dump_read_losses(Out out, const ReadLosses& losses) {
  dump_losses(out, {{"damaged_items", losses.damaged_items},
                    {"unread_items", losses.unread_items},
                    {"torn_slots", losses.torn_slots}});
}

}  // namespace

std::string dump_text(const TraceSnapshot& snapshot, const std::vector<TraceModule>& modules) {
  std::string text;
  const Out out(text);
  dump_process(out, snapshot);
  const TraceLosses& lost = snapshot.losses;
  dump_losses(out, {{"live_full", lost.live_full},
                    {"sites_full", lost.sites_full},
                    {"ranges_full", lost.ranges_full},
                    {"unknown_frees", lost.unknown_frees},
                    {"truncated_stacks", lost.truncated_stacks},
                    {"empty_stacks", lost.empty_stacks},
                    {"extend_failures", lost.extend_failures},
                    {"reentered", lost.reentered},
                    {"missed_frees", lost.missed_frees}});
  dump_read_losses(out, snapshot.read_losses);
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const TraceModule& module = modules[i];
    fmt::format_to(out, "module {} {:#x}-{:#x} bias={:#x} build_id={} {}\n", i, module.begin,
                   module.end, module.load_bias, module.build_id.empty() ? "-" : module.build_id,
                   escape_text(module.path));
  }
  for (const SiteCounts& site : snapshot.sites) {
    fmt::format_to(out,
                   "site {} kind=\"{}\" node={} live={} live_blocks={} alloc={} alloc_blocks={} "
                   "free={} free_blocks={} peak={} temporary={}{}\n",
                   site.index, allocation_kind_name(site.kind), site.node, site.live_bytes(),
                   site.live_blocks(), site.alloc_bytes, site.alloc_blocks, site.free_bytes,
                   site.free_blocks, site.peak_live_bytes, site.temporary_blocks,
                   site.truncated ? " truncated" : "");
  }
  return text;
}

std::string dump_text(const LiveScan& scan) {
  std::string text;
  const Out out(text);
  dump_read_losses(out, scan.losses);
  for (const LiveSite& site : scan.sites) {
    fmt::format_to(out,
                   "live {} records={} blocks={:.2f} bytes={:.0f} error={:.0f} ages=", site.site,
                   site.recorded_blocks, site.blocks, site.bytes, std::sqrt(site.bytes_variance));
    const char* separator = "";
    for (std::size_t i = 0; i < scan.ages.size(); ++i) {
      if (site.bytes_by_age[i] > 0.0) {
        const AgeBucket& age = scan.ages[i];
        fmt::format_to(out, "{}{}{}-{}:{:.0f}", separator, age.is_step ? "step" : "s", age.first,
                       age.last, site.bytes_by_age[i]);
        separator = ",";
      }
    }
    text += '\n';
  }
  return text;
}

}  // namespace tidemark::tests
