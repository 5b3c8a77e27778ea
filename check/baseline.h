// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "tracker/compare/baseline.h"

namespace tidemark::check {

// What memory figures depend on beside the program.
struct MachineFacts {
  std::string arch;
  std::uint32_t cpus = 0;  // that this process may use: pools of threads are as large
  std::uint64_t memory_bytes = 0;
  std::uint64_t page_bytes = 0;
  std::string huge_pages;  // "always", "madvise", "never"; empty: unknown
  std::string libc;        // "glibc 2.36"
  std::string kernel;      // for people: it makes no other class
};
MachineFacts this_machine();
// "x86_64, 2 CPUs, 32 GiB"; the memory is rounded.
std::string machine_text(const MachineFacts& machine);
// Why figures of the two may not be compared, for example "2 CPUs here, 16 there". Empty: they are
// of one class. Memory may differ by a quarter.
std::vector<std::string> class_differences(const MachineFacts& here, const MachineFacts& there);

struct StoredRun {
  tracker::BaselineRun figures;
  std::string at;  // "2026-11-16T12:00:00Z"
  std::string commit;
};

// The runs of one check on machines of one class.
struct BaselineEntry {
  MachineFacts machine;
  std::vector<StoredRun> runs;  // the oldest first
};

// A file of them, by the names of checks.
struct Baseline {
  std::map<std::string, std::vector<BaselineEntry>, std::less<>> checks;
};

inline constexpr std::size_t kMostStoredRuns = 20;  // of one entry; the oldest goes

// The entry for machines of this class; without one, any other of the check. nullptr: none at all.
const BaselineEntry* find_entry(const Baseline& baseline, std::string_view check,
                                const MachineFacts& machine);
void add_run(Baseline& baseline, const std::string& check, const MachineFacts& machine,
             StoredRun run);

// kNotFound: there is no such file.
Result<Baseline> read_baseline(const std::string& path);
// The file is replaced as a whole.
Status write_baseline(const std::string& path, const Baseline& baseline);

// In config_file.cpp, with the other JSON that check reads.
Result<Baseline> parse_baseline(std::string_view text);
// One run per line, so that a repository shows what changed.
std::string baseline_text(const Baseline& baseline);

}  // namespace tidemark::check
