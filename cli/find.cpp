// SPDX-License-Identifier: Apache-2.0
#include "cli/find.h"

#include <unistd.h>

#include <memory>
#include <string>

#include "cli/exit_code.h"
#include "cli/find_view.h"
#include "cli/messages.h"
#include "common/io.h"
#include "monitor/gpu_source.h"
#include "monitor/procps_source.h"

namespace tidemark::cli {
namespace {

void put(int fd, const std::string& text) {
  (void)write_all(fd, text);  // a reader that went away leaves nobody to tell
}

int report_error(const Error& error) {
  print_error(error);
  return kExitTarget;
}

void report_no_pick(const monitor::NoPick& no_pick) {
  std::string text = "tidemark: error: " + no_pick.what;
  for (const std::string& detail : no_pick.details) {
    text += "\n  " + detail;
  }
  put(STDERR_FILENO, text + "\nhint: " + no_pick.hint + "\n");
}

}  // namespace

int run_find(const FindOptions& options) {
  const auto source = monitor::make_procps_source();
  if (!source) {
    return report_error(source.error());
  }
  auto gpu = monitor::open_gpu_source();  // no GPU is no error here
  monitor::EvidenceOptions looked_at;
  looked_at.uid = ::geteuid();
  looked_at.self = ::getpid();
  looked_at.gpu = gpu ? gpu->get() : nullptr;
  const auto evidence = monitor::collect_evidence(**source, looked_at);
  if (!evidence) {
    return report_error(evidence.error());
  }
  const monitor::FindResult result = monitor::rank_candidates(*evidence);
  put(STDOUT_FILENO, options.json ? find_json(result, options) : find_text(result, options));
  if (!result.picked) {
    report_no_pick(monitor::explain_no_pick(result));
    return kExitTarget;
  }
  return kExitOk;
}

}  // namespace tidemark::cli
