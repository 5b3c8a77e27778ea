// SPDX-License-Identifier: Apache-2.0
#include "tests/support/record_text.h"

#include <optional>
#include <type_traits>

#include <fmt/format.h>

#include "common/record_fields.h"
#include "common/text.h"

namespace tidemark::tests {
namespace {

std::string show(const std::string& value) { return "'" + escape_text(value) + "'"; }
std::string show(const LossName& name) { return show(std::string(name.text())); }
std::string show(const std::vector<std::int64_t>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, " "));
}
std::string show(const ProcessKey& key) { return fmt::format("{}@{}", key.pid, key.start_ticks); }
template <typename T>
std::string show(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return std::string(name_of(value));
  } else {
    return fmt::format("{}", value);
  }
}
template <typename T>
std::string show(const std::optional<T>& value) {
  return value ? show(*value) : "unknown";
}

// " name=value" of each field.
template <typename List, typename Record>
std::string fields_as(const Record& record) {
  std::string text;
  visit_fields<List>([&](const auto& field) {
    text += fmt::format(" {}={}", field.name, show(record.*field.member));
  });
  return text;
}
template <typename Record>
std::string fields_of(const Record& record) {
  return fields_as<Record>(record);
}

// A line for each record that its fields tell all about.
template <typename Records>
std::string lines_of(const char* what, const Records& records) {
  std::string text;
  for (const auto& record : records) {
    text += fmt::format("\n {}{}", what, fields_of(record));
  }
  return text;
}

// The same with what the record belongs to.
template <typename Records, typename Id>
std::string lines_of(const char* what, const Records& records, Id id) {
  std::string text;
  for (const auto& record : records) {
    text += fmt::format("\n {} {}{}", what, show(record.*id), fields_of(record));
  }
  return text;
}

std::string text_of(const GpuSample& gpu) {
  std::string text = " " + show(gpu.name) + fields_of(gpu) + fields_as<GpuState>(gpu);
  for (const GpuProcessUse& use : gpu.processes) {
    text += fields_of(use);
  }
  return text;
}

std::string text_of(const AllocationFacts& facts) {
  std::string text = lines_of("module", facts.modules, &ModuleRecord::module) +
                     lines_of("frame", facts.frames, &FrameRecord::frame);
  for (const SiteRecord& site : facts.sites) {
    text += fmt::format("\n site {} {}{} frames {}", site.site, show(site.key), fields_of(site),
                        fmt::join(site.frames, " "));
  }
  text += lines_of("site sample", facts.samples, &SiteSample::site);
  for (const SiteAges& ages : facts.ages) {
    text += fmt::format("\n births {}", ages.site) + lines_of("birth", ages.intervals);
  }
  text += lines_of("trace", facts.traces, &TraceSample::key) +
          lines_of("account", facts.accounts, &MemoryAccount::key) +
          lines_of("untraced", facts.untraced, &UntracedProcess::key);
  if (facts.shm) {
    text += "\n shm" + fields_of(*facts.shm) + lines_of("segment", facts.shm->largest);
  }
  return text;
}

std::string text_of(const HeapFacts& facts) {
  std::string text;
  for (const OwnerRecord& owner : facts.owners) {
    text += fmt::format("\n owner {} {}{}", owner.owner, show(owner.key), fields_of(owner)) +
            lines_of("path step", owner.steps);
  }
  for (const HeapFacts::OfProcess& of : facts.looks) {
    text += fmt::format("\n look {}{}{}", show(of.look.key), fields_of(of.look),
                        fields_of(of.look.interpreter));
    for (const OwnerSample& sample : of.owners) {
      text += fmt::format("\n owner sample {}{}", sample.owner, fields_of(sample)) +
              lines_of("holds", sample.holds) + lines_of("made at", sample.sites);
    }
    text += lines_of("type", of.types) + lines_of("tensor", of.tensors);
  }
  return text;
}

}  // namespace

std::string text_of(const RunInfo& info) {
  return fields_of(info) + fmt::format(" ended_cleanly={}", info.ended_cleanly);
}

std::string text_of(const ProcessRecord& process) { return fields_of(process); }

std::string text_of(const ProcessSample& sample) {
  return " " + show(sample.key) + fields_of(sample);
}

std::string text_of(const Tick& tick) {
  std::string text = "tick" + fields_of(tick) + "\n tree" + fields_of(tick.tree);
  for (const RoleSample& role : tick.roles) {
    text += fmt::format("\n role {}{}", role_name(role.role), fields_of(role.sum));
  }
  text +=
      lines_of("new", tick.new_processes) + lines_of("sample", tick.processes, &ProcessSample::key);
  if (tick.system) {
    text += "\n system" + fields_of(*tick.system);
  }
  for (const GpuSample& gpu : tick.gpus) {
    text += "\n gpu" + text_of(gpu);
  }
  for (const MemoryLedger& ledger : tick.ledgers) {
    text += fmt::format("\n ledger {}{}", show(ledger.key), fields_of(ledger)) +
            lines_of("ledger row", ledger.rows);
  }
  return text + lines_of("marker", tick.markers) + lines_of("event", tick.events) +
         lines_of("loss", tick.losses) + text_of(tick.allocations) + text_of(tick.heap) +
         lines_of("intervention", tick.interventions, &InterventionRecord::key);
}

}  // namespace tidemark::tests
