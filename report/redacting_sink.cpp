// SPDX-License-Identifier: Apache-2.0
#include "report/redacting_sink.h"

#include <utility>

#include "common/redact.h"

namespace tidemark::report {
namespace {

ProcessRecord redacted(ProcessRecord process) {
  process.argv = redact_text(process.argv);
  return process;
}

}  // namespace

Status RedactingSink::begin(const RunInfo& info) {
  RunInfo redacted_info = info;
  redacted_info.command = redact_text(info.command);
  return next_.begin(redacted_info);
}

Status RedactingSink::add(const Tick& tick) {
  if (tick.new_processes.empty()) {
    return next_.add(tick);
  }
  Tick redacted_tick = tick;
  for (ProcessRecord& process : redacted_tick.new_processes) {
    process = redacted(std::move(process));
  }
  return next_.add(redacted_tick);
}

Status RedactingSink::process_ended(const ProcessRecord& process) {
  return next_.process_ended(redacted(process));
}

}  // namespace tidemark::report
