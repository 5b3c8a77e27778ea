// SPDX-License-Identifier: Apache-2.0
#include "live/find.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/exit_code.h"
#include "common/io.h"
#include "common/json_writer.h"
#include "common/messages.h"
#include "common/redact.h"
#include "common/text.h"
#include "common/units.h"
#include "monitor/gpu/gpu_watch.h"
#include "monitor/procfs/process_source.h"

namespace tidemark::live {
namespace {

using monitor::Candidate;
using monitor::Confidence;
using monitor::FindResult;

constexpr std::size_t kArgvColumns = 100;

std::string_view confidence_name(Confidence confidence) {
  switch (confidence) {
    case Confidence::kWeak:
      return "weak";
    case Confidence::kLikely:
      return "likely";
    case Confidence::kCertain:
      break;
  }
  return "certain";
}

std::string shown_argv(const std::vector<std::string>& argv, const FindOptions& options) {
  return options.no_redact ? fmt::format("{}", fmt::join(argv, " ")) : redact_argv(argv);
}

// Weak ones are noise as soon as there is a better one.
std::vector<const Candidate*> shown(const FindResult& result, const FindOptions& options) {
  std::vector<const Candidate*> list;
  for (const Candidate& candidate : result.candidates) {
    const bool weak = candidate.confidence == Confidence::kWeak;
    if (!weak || options.all || result.candidates.front().confidence == Confidence::kWeak) {
      list.push_back(&candidate);
    }
  }
  return list;
}

std::string ranks_of(const Candidate& candidate) {
  std::vector<std::string> parts;
  for (const monitor::RankProcess& rank : candidate.ranks) {
    parts.push_back(rank.rank ? fmt::format("{} (rank {})", rank.pid, *rank.rank)
                              : fmt::format("{}", rank.pid));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

void append_candidate(std::string& text, const Candidate& candidate, const FindOptions& options) {
  text +=
      fmt::format("pid {}, {}, {}, footprint {}\n", candidate.key.pid, role_name(candidate.role),
                  confidence_name(candidate.confidence), format_bytes(candidate.footprint_bytes));
  text += fmt::format("  command   {}\n",
                      shorten(escape_text(shown_argv(candidate.argv, options)), kArgvColumns));
  text += fmt::format("  below it  {}\n", workers_text(candidate));
  if (!candidate.ranks.empty()) {
    text += fmt::format("  ranks     {}\n", ranks_of(candidate));
  }
  if (!candidate.wrappers.empty()) {
    text += fmt::format("  above it  {} (wrappers and launchers, not the job)\n",
                        fmt::join(candidate.wrappers, ", "));
  }
  text += fmt::format("  because   {}\n", fmt::join(candidate.reasons, "; "));
}

void append_orphans(std::string& text, const FindResult& result) {
  constexpr std::size_t kMost = 10;
  const std::size_t shown = std::min(result.orphans.size(), kMost);
  for (std::size_t i = 0; i < shown; ++i) {
    const monitor::Orphan& orphan = result.orphans[i];
    text +=
        fmt::format("orphan: pid {}, {}, footprint {}; its trainer has exited\n", orphan.key.pid,
                    role_name(orphan.role), format_bytes(orphan.footprint_bytes));
  }
  if (shown < result.orphans.size()) {
    text += fmt::format("and {}\n", format_count(result.orphans.size() - shown, "more orphan"));
  }
}

void write_orphan(JsonWriter& json, const monitor::Orphan& orphan, const FindOptions& options) {
  json.begin_object()
      .field("pid", orphan.key.pid)
      .field("start_ticks", orphan.key.start_ticks)
      .field("role", role_name(orphan.role))
      .field("argv", shown_argv(orphan.argv, options))
      .field("footprint_bytes", orphan.footprint_bytes)
      .end_object();
}

void write_candidate(JsonWriter& json, const Candidate& candidate, const FindOptions& options) {
  json.begin_object()
      .field("pid", candidate.key.pid)
      .field("start_ticks", candidate.key.start_ticks)
      .field("role", role_name(candidate.role))
      .field("score", candidate.score)
      .field("confidence", confidence_name(candidate.confidence))
      .field("argv", shown_argv(candidate.argv, options))
      .field("footprint_bytes", candidate.footprint_bytes)
      .field("compile_workers", candidate.compile_workers)
      .field("dataloader_workers", candidate.dataloader_workers);
  json.key("below").begin_array();
  for (const pid_t pid : candidate.wrappers) {
    json.value(pid);
  }
  json.end_array().key("ranks").begin_array();
  for (const monitor::RankProcess& rank : candidate.ranks) {
    json.begin_object().field("pid", rank.pid).field("rank", rank.rank).end_object();
  }
  json.end_array().key("watch").begin_array();
  for (const pid_t pid : candidate.watch) {
    json.value(pid);
  }
  json.end_array().key("reasons").begin_array();
  for (const std::string& reason : candidate.reasons) {
    json.value(reason);
  }
  json.end_array().end_object();
}

void put(int fd, const std::string& text) {
  (void)write_all(fd, text);  // a reader that went away leaves nobody to tell
}

int report_error(const Error& error) {
  print_error(error);
  return kExitTarget;
}

}  // namespace

std::string workers_text(const Candidate& candidate) {
  std::vector<std::string> parts;
  if (candidate.compile_workers > 0) {
    parts.push_back(format_count(candidate.compile_workers, "compile worker"));
  }
  if (candidate.dataloader_workers > 0) {
    parts.push_back(format_count(candidate.dataloader_workers, "DataLoader worker"));
  }
  return parts.empty() ? "no workers" : fmt::format("{}", fmt::join(parts, ", "));
}

std::string pid_options(const std::vector<pid_t>& pids) {
  return fmt::format("--pid {}", fmt::join(pids, " --pid "));
}

std::string find_text(const FindResult& result, const FindOptions& options) {
  std::string text;
  bool first = true;
  for (const Candidate* candidate : shown(result, options)) {
    if (first && result.picked) {
      text += "training job: ";
    } else if (first) {
      text += "candidates:\n";
    } else if (result.picked && candidate == &result.candidates[1]) {
      text += "other candidates:\n";
    }
    append_candidate(text, *candidate, options);
    first = false;
  }
  append_orphans(text, result);
  if (result.picked) {
    text += fmt::format("next: tidemark monitor {}\n",
                        pid_options(result.candidates[*result.picked].watch));
  }
  return text;
}

std::string find_json(const FindResult& result, const FindOptions& options) {
  JsonWriter json;
  json.begin_object().field("schema", 1);
  json.field("picked", result.picked
                           ? std::optional<pid_t>(result.candidates[*result.picked].key.pid)
                           : std::nullopt);
  json.key("candidates").begin_array();
  for (const Candidate* candidate : shown(result, options)) {
    write_candidate(json, *candidate, options);
  }
  json.end_array().key("orphans").begin_array();
  for (const monitor::Orphan& orphan : result.orphans) {
    write_orphan(json, orphan, options);
  }
  json.end_array()
      .field("processes", result.processes)
      .field("not_permitted", result.not_permitted)
      .end_object();
  return json.take() + "\n";
}

Result<monitor::FindResult> look_for_training(monitor::ProcessSource& source,
                                              const std::string& proc_root) {
  constexpr std::chrono::milliseconds kPatience{1000};
  monitor::GpuWatch gpu({.timeout = kPatience});
  const auto problem = gpu.wait_until_open(kPatience);
  if (problem && problem->code != Errc::kUnsupported) {  // no GPU is no error here
    print_note("note: GPU memory is unknown: " + problem->what);
  }
  monitor::EvidenceOptions looked_at;
  looked_at.proc_root = proc_root;
  looked_at.uid = ::geteuid();
  looked_at.self = ::getpid();
  looked_at.gpu = problem ? nullptr : &gpu;
  const auto evidence = monitor::collect_evidence(source, looked_at);
  if (!evidence) {
    return evidence.error();
  }
  monitor::FindResult result = monitor::rank_candidates(*evidence);
  result.is_root = looked_at.uid == 0;
  return result;
}

std::string no_pick_text(const monitor::NoPick& no_pick) {
  std::string text = "tidemark: error: " + no_pick.what;
  for (const std::string& detail : no_pick.details) {
    text += "\n  " + detail;
  }
  return text + "\nhint: " + no_pick.hint + "\n";
}

int run_find(const FindOptions& options) {
  const auto source = monitor::make_procps_source();
  if (!source) {
    return report_error(source.error());
  }
  const auto result = look_for_training(**source);
  if (!result) {
    return report_error(result.error());
  }
  put(STDOUT_FILENO, options.json ? find_json(*result, options) : find_text(*result, options));
  if (!result->picked) {
    put(STDERR_FILENO, no_pick_text(monitor::explain_no_pick(*result)));
    return kExitTarget;
  }
  return kExitOk;
}

}  // namespace tidemark::live
