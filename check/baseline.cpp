// SPDX-License-Identifier: Apache-2.0
#include "check/baseline.h"

#include <fcntl.h>
#include <gnu/libc-version.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"
#include "common/json_writer.h"
#include "common/text.h"
#include "common/units.h"
#include "recording/files.h"
#include "report/output.h"

namespace tidemark::check {
namespace {

constexpr std::size_t kMostBaselineBytes = 16U << 20U;
constexpr double kSimilarMemory = 0.25;

std::uint32_t usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    return static_cast<std::uint32_t>(CPU_COUNT(&set));
  }
  return static_cast<std::uint32_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

// The word in brackets of "always [madvise] never".
std::string huge_pages() {
  const auto text = read_file("/sys/kernel/mm/transparent_hugepage/enabled", 4096);
  if (!text) {
    return "";
  }
  const std::size_t open = text->find('[');
  const std::size_t close = text->find(']');
  return open == std::string::npos || close == std::string::npos || close < open
             ? ""
             : text->substr(open + 1, close - open - 1);
}

void compare(std::vector<std::string>& differences, const std::string& here,
             const std::string& there, std::string_view what) {
  if (here != there) {
    differences.push_back(fmt::format("{} {} here, {} there", what,
                                      here.empty() ? "unknown" : escape_text(here),
                                      there.empty() ? "unknown" : escape_text(there)));
  }
}

void add_machine(JsonWriter& json, const MachineFacts& machine) {
  json.begin_object()
      .field("arch", machine.arch)
      .field("cpus", machine.cpus)
      .field("memory_bytes", machine.memory_bytes)
      .field("page_bytes", machine.page_bytes)
      .field("huge_pages", machine.huge_pages)
      .field("libc", machine.libc)
      .field("kernel", machine.kernel)
      .end_object();
}

std::string run_text(const StoredRun& run) {
  JsonWriter json;
  json.begin_object()
      .field("at", run.at)
      .field("commit", run.commit)
      .field("rate_bytes_per_s", run.figures.rate_bytes_per_s)
      .field("rate_bytes_per_step", run.figures.rate_bytes_per_step)
      .field("plateau_bytes", std::llround(run.figures.plateau_bytes))
      .field("peak_bytes", std::llround(run.figures.peak_bytes))
      .end_object();
  return json.take();
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  append_json_escaped(out, text);
  return out + '"';
}

}  // namespace

MachineFacts this_machine() {
  MachineFacts machine;
  utsname name{};
  if (::uname(&name) == 0) {
    machine.arch = name.machine;
    machine.kernel = name.release;
  }
  machine.cpus = usable_cpus();
  const long page = std::max(1L, ::sysconf(_SC_PAGESIZE));
  machine.page_bytes = static_cast<std::uint64_t>(page);
  machine.memory_bytes =
      static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES))) * machine.page_bytes;
  machine.huge_pages = huge_pages();
  machine.libc = fmt::format("glibc {}", ::gnu_get_libc_version());
  return machine;
}

std::string machine_text(const MachineFacts& machine) {
  // To 2, 3, 4, 6, 8, 12, ... GiB: machines of one kind do not have quite the same.
  const double gib = std::max(static_cast<double>(machine.memory_bytes), 1.0) / 0x1p30;
  const double lower = std::exp2(std::floor(std::log2(gib)));
  double rounded = lower;
  for (const double each : {1.5 * lower, 2.0 * lower}) {
    rounded = std::abs(each - gib) < std::abs(rounded - gib) ? each : rounded;
  }
  return fmt::format("{}, {}, {:g} GiB", escape_text(machine.arch),
                     format_count(machine.cpus, "CPU"), rounded);
}

std::vector<std::string> class_differences(const MachineFacts& here, const MachineFacts& there) {
  std::vector<std::string> differences;
  compare(differences, here.arch, there.arch, "processor");
  if (here.cpus != there.cpus) {
    differences.push_back(fmt::format("{} CPUs here, {} there", here.cpus, there.cpus));
  }
  const auto mine = static_cast<double>(here.memory_bytes);
  const auto theirs = static_cast<double>(there.memory_bytes);
  if (std::abs(mine - theirs) > kSimilarMemory * std::max(mine, theirs)) {
    differences.push_back(fmt::format("{} of memory here, {} there",
                                      format_bytes(here.memory_bytes),
                                      format_bytes(there.memory_bytes)));
  }
  if (here.page_bytes != there.page_bytes) {
    differences.push_back(fmt::format("pages of {} here, of {} there",
                                      format_bytes(here.page_bytes),
                                      format_bytes(there.page_bytes)));
  }
  compare(differences, here.huge_pages, there.huge_pages, "huge pages");
  compare(differences, here.libc, there.libc, "C library");
  return differences;
}

const BaselineEntry* find_entry(const Baseline& baseline, std::string_view check,
                                const MachineFacts& machine) {
  const auto found = baseline.checks.find(check);
  if (found == baseline.checks.end()) {
    return nullptr;
  }
  const BaselineEntry* other = nullptr;
  for (const BaselineEntry& entry : found->second) {
    if (entry.runs.empty()) {
      continue;
    }
    if (class_differences(machine, entry.machine).empty()) {
      return &entry;
    }
    other = &entry;
  }
  return other;
}

void add_run(Baseline& baseline, const std::string& check, const MachineFacts& machine,
             StoredRun run) {
  std::vector<BaselineEntry>& entries = baseline.checks[check];
  auto entry = std::find_if(entries.begin(), entries.end(), [&](const BaselineEntry& each) {
    return class_differences(machine, each.machine).empty();
  });
  if (entry == entries.end()) {
    entry = entries.insert(entries.end(), BaselineEntry{machine, {}});
  }
  entry->machine = machine;
  entry->runs.push_back(std::move(run));
  if (entry->runs.size() > kMostStoredRuns) {
    entry->runs.erase(entry->runs.begin());
  }
}

Result<Baseline> read_baseline(const std::string& path) {
  TIDEMARK_TRY_ASSIGN(const auto text, read_file(path, kMostBaselineBytes));
  auto baseline = parse_baseline(text);
  return baseline ? std::move(baseline) : recording::named(path, baseline.error());
}

Status write_baseline(const std::string& path, const Baseline& baseline) {
  return report::write_report_file(path, baseline_text(baseline));
}

std::string baseline_text(const Baseline& baseline) {
  std::string out = "{\"schema\": 1, \"checks\": {";
  std::string_view before_check = "\n";
  for (const auto& [name, entries] : baseline.checks) {
    out += fmt::format("{} {}: [", before_check, quoted(name));
    before_check = ",\n";
    std::string_view before_entry = "\n";
    for (const BaselineEntry& entry : entries) {
      JsonWriter machine;
      add_machine(machine, entry.machine);
      out += fmt::format("{}  {{\"machine\": {},\n   \"runs\": [", before_entry, machine.text());
      before_entry = ",\n";
      std::string_view before_run = "\n";
      for (const StoredRun& run : entry.runs) {
        out += fmt::format("{}    {}", before_run, run_text(run));
        before_run = ",\n";
      }
      out += "]}";
    }
    out += "]";
  }
  return out + "\n}}\n";
}

}  // namespace tidemark::check
