// SPDX-License-Identifier: Apache-2.0
#include "live/find.h"

#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>

#include "common/exit_code.h"
#include "common/io.h"
#include "common/messages.h"
#include "live/find_view.h"
#include "monitor/gpu/gpu_watch.h"
#include "monitor/procfs/process_source.h"

namespace tidemark::live {
namespace {

void put(int fd, const std::string& text) {
  (void)write_all(fd, text);  // a reader that went away leaves nobody to tell
}

int report_error(const Error& error) {
  print_error(error);
  return kExitTarget;
}

}  // namespace

Result<monitor::FindResult> look_for_training(monitor::ProcessSource& source) {
  constexpr std::chrono::milliseconds kPatience{1000};
  monitor::GpuWatch gpu({.timeout = kPatience});
  const auto problem = gpu.wait_until_open(kPatience);
  if (problem && problem->code != Errc::kUnsupported) {  // no GPU is no error here
    print_note("note: GPU memory is unknown: " + problem->what);
  }
  monitor::EvidenceOptions looked_at;
  looked_at.uid = ::geteuid();
  looked_at.self = ::getpid();
  looked_at.gpu = problem ? nullptr : &gpu;
  const auto evidence = monitor::collect_evidence(source, looked_at);
  if (!evidence) {
    return evidence.error();
  }
  return monitor::rank_candidates(*evidence);
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
