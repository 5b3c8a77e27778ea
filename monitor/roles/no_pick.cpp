// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "common/redact.h"
#include "common/text.h"
#include "common/units.h"
#include "monitor/roles/finder.h"

namespace tidemark::monitor {
namespace {

constexpr std::size_t kArgvColumns = 80;
constexpr std::size_t kMostShown = 10;

// What to give to --pid for each candidate of this confidence, and what it is.
std::vector<std::string> choices(const FindResult& result, Confidence confidence) {
  std::vector<std::string> lines;
  std::size_t left_off = 0;
  for (const Candidate& candidate : result.candidates) {
    if (candidate.confidence != confidence) {
      continue;
    }
    if (lines.size() == kMostShown) {
      ++left_off;
      continue;
    }
    std::string line;
    for (const pid_t pid : candidate.watch) {
      line += fmt::format("--pid {} ", pid);
    }
    lines.push_back(line +
                    fmt::format("({}, {})",
                                shorten(escape_text(redact_argv(candidate.argv)), kArgvColumns),
                                format_bytes(candidate.footprint_bytes)));
  }
  if (left_off > 0) {
    lines.push_back(fmt::format("and {} more", left_off));
  }
  return lines;
}

std::string permission_note(const FindResult& result) {
  return result.not_permitted == 0
             ? ""
             : fmt::format(" ({} more could not be read for lack of permission)",
                           result.not_permitted);
}

}  // namespace

std::string NoPick::one_line() const {
  std::string text = what;
  for (const std::string& detail : details) {
    text += (text.size() == what.size() ? ": " : "; ") + detail;
  }
  return text;
}

NoPick explain_no_pick(const FindResult& result) {
  if (result.candidates.empty()) {
    return {
        fmt::format("found no training process among {} processes{}", result.processes,
                    permission_note(result)),
        {"looked for libtorch, TensorFlow or JAX in memory", "GPU devices and GPU memory in use",
         "compile and DataLoader workers", "RANK, LOCAL_RANK or WORLD_SIZE",
         "python with a name or arguments like those of a training script"},
        "name the process with --pid, or start it as `tidemark monitor -- COMMAND`"};
  }
  const Candidate& first = result.candidates.front();
  if (first.confidence == Confidence::kWeak) {
    return {fmt::format("no process shows more than weak signs of training{}; the big pythons are",
                        permission_note(result)),
            choices(result, first.confidence), "if one of them is yours, name it with --pid"};
  }
  return {"several jobs look equally like training", choices(result, first.confidence),
          fmt::format("choose one, for example: tidemark monitor --pid {}", first.watch.front())};
}

}  // namespace tidemark::monitor
