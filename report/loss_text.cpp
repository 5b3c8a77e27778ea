// SPDX-License-Identifier: Apache-2.0
#include "report/loss_text.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "common/records.h"
#include "common/text.h"

namespace tidemark::report {
namespace {

// In the order of LossKind.
constexpr std::array<std::string_view, 23> kTexts{
    "how the pages of another user's process are shared: its footprint is estimated",
    "how the pages of a process are shared: it could not be read",
    "how the pages of a process above 64 GiB are shared, so as not to stall it (--pss always reads "
    "them)",
    "which part of a process's memory is anonymous: the kernel gives only the sum",
    "a process that could not be read: its last values stand",
    "the process table: /proc could not be listed",
    "markers that were overwritten before they were read",
    "markers in a file that is damaged or of a later version",
    "steps in the output that were not taken in time",
    "lines of the log on which --step-regex would take too long",
    "lines of ours that nobody read in time",
    "samples for which the disk was too slow",
    "processes, markers and events for which the disk was too slow",
    "lines of the recording that could not be used",
    "a GPU: its driver refused to answer",
    "figures of a GPU that its driver refused",
    "figures of a GPU that came too late: older ones stand",
    "processes on a GPU that have no pid here",
    "curves of single processes: there were too many, or they ended at once",
    "samples that were no amount of memory",
    "events beyond the 10,000th",
    "files of the tracer that were damaged or of another version",
    "entries of the tracer that contradict its format",
};
static_assert(kTexts.size() == static_cast<std::size_t>(LossKind::kTraceLooksDamaged) + 1);

}  // namespace

std::string loss_text(std::string_view name, std::uint64_t count) {
  const auto names = loss_names();
  const auto known = std::find(names.begin(), names.end(), name);
  const std::string what =
      known == names.end() ? escape_text(name)
                           : std::string(kTexts[static_cast<std::size_t>(known - names.begin())]);
  return count == 1 ? what + " (once)" : fmt::format("{} ({} times)", what, count);
}

}  // namespace tidemark::report
