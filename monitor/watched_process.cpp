// SPDX-License-Identifier: Apache-2.0
#include "monitor/watched_process.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/redact.h"
#include "monitor/roles/roles.h"

namespace tidemark::monitor {
namespace {

// A program that is rebuilt, upgraded or removed while it runs is still the same program.
std::optional<std::string> program_of(const ProcessHandle& handle) {
  constexpr std::string_view kDeleted = " (deleted)";
  auto exe = handle.exe();
  if (!exe) {
    return std::nullopt;
  }
  if (exe->ends_with(kDeleted)) {
    exe->resize(exe->size() - kDeleted.size());
  }
  return *std::move(exe);
}

}  // namespace

WatchedProcess::WatchedProcess(ProcessHandle opened, const ProcessEntry& entry, double started_s)
    : handle(std::move(opened)), cpu_ticks(entry.cpu_ticks) {
  record.key = entry.key;
  record.ppid = entry.ppid;
  record.comm = entry.comm;
  record.started_s = started_s;
  status.comm = entry.comm;  // until it is read
  status.ppid = entry.ppid;
}

void WatchedProcess::set_age(std::int64_t boot_ns) {
  static const auto kTicksPerSecond = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const double age_s =
      to_seconds(boot_ns) - static_cast<double>(record.key.start_ticks) / kTicksPerSecond;
  // What starts in the future was counted by another clock: the table of another machine.
  record.age_s = age_s >= 0.0 ? std::optional(age_s) : std::nullopt;
}

void WatchedProcess::read_identity(bool redact) {
  if (auto read = handle.argv(); read) {
    argv = *std::move(read);
  }
  if (auto read = program_of(handle)) {
    exe = *std::move(read);
  }
  stack_start = handle.stack_start();
  const auto variables = handle.environment(launcher_variables());
  rank = variables ? rank_from_environment(*variables) : std::nullopt;
  job = variables ? job_from_environment(*variables) : "";
  record.argv = redact ? redact_argv(argv) : fmt::format("{}", fmt::join(argv, " "));
}

ImageChange WatchedProcess::image_change() const {
  const auto exe_now = program_of(handle);
  const auto now = handle.argv();
  const auto stack_now = handle.stack_start();
  const bool same_exe = !exe_now || *exe_now == exe;
  const bool same_argv = !now || now->empty() || *now == argv;
  if (stack_now && stack_start && *stack_now == *stack_start) {
    // Its file may have been moved. Without random addresses a new program may get an equal stack.
    return same_argv ? ImageChange::kNone : (same_exe ? ImageChange::kTitle : ImageChange::kExec);
  }
  const bool new_stack = stack_now && stack_start;
  if (!new_stack && same_exe && same_argv) {
    return ImageChange::kNone;
  }
  return now && now->empty() ? ImageChange::kUnderWay : ImageChange::kExec;
}

bool WatchedProcess::shares_image_with(const WatchedProcess& parent) const {
  if (stack_start && parent.stack_start) {
    return *stack_start == *parent.stack_start && exe == parent.exe;
  }
  return argv == parent.argv && exe == parent.exe;
}

Result<bool> WatchedProcess::read_status(StatusRead when) {
  std::optional<StatmFields> before;
  if (when != StatusRead::kAlways) {
    const auto read = handle.statm();
    if (!read && read.error().code == Errc::kGone) {
      return read.error();
    }
    if (read) {
      before = *read;
    }
    // Nothing in statm, and yet memory: the main thread has ended, the others are in status only.
    const bool told = before && (before->size_pages > 0 || !has_memory);
    if (when == StatusRead::kIfChanged && told && before == statm) {
      return false;
    }
  }
  TIDEMARK_TRY_ASSIGN(status, handle.status());
  statm = before;
  return true;
}

CheapMemory WatchedProcess::cheap() const {
  if (!status.rss_anon_bytes) {  // before Linux 4.5: rather too much than nothing
    return {status.rss_bytes.value_or(0), 0, status.swap_bytes.value_or(0)};
  }
  const std::uint64_t shmem = status.rss_shmem_bytes.value_or(0);
  return {status.rss_anon_bytes.value_or(0), shmem - std::min(shmem, tracer_bytes),
          status.swap_bytes.value_or(0)};
}

// Nobody else maps the tracer's file: its pages are private.
Result<PssFields> WatchedProcess::pss_without_tracer() {
  auto read = handle.pss();
  if (read) {
    const std::uint64_t own =
        std::min({tracer_bytes, read->pss_shmem_bytes, read->private_dirty_bytes});
    for (std::uint64_t* bytes :
         {&read->rss_bytes, &read->pss_bytes, &read->pss_shmem_bytes, &read->private_dirty_bytes}) {
      *bytes -= std::min(*bytes, own);
    }
  }
  return read;
}

ProcessSample WatchedProcess::sample(std::int64_t now_ns) const {
  ProcessSample sample;
  sample.key = record.key;
  const std::uint64_t own = std::min(status.rss_shmem_bytes.value_or(0), tracer_bytes);
  const auto without = [own](std::optional<std::uint64_t> bytes) {
    return bytes ? std::optional(*bytes - std::min(*bytes, own)) : std::nullopt;
  };
  sample.rss_bytes = without(status.rss_bytes);
  sample.rss_anon_bytes = status.rss_anon_bytes;
  sample.rss_file_bytes = status.rss_file_bytes;
  sample.rss_shmem_bytes = without(status.rss_shmem_bytes);
  sample.swap_bytes = status.swap_bytes;
  sample.hwm_bytes = status.hwm_bytes;
  sample.threads = status.threads;
  sample.state = status.state;
  if (pss) {
    sample.pss_bytes = pss->pss_bytes;
    sample.pss_footprint_bytes = pss->footprint_bytes();
    sample.uss_bytes = pss->uss_bytes();
    sample.pss_age_s = to_seconds(now_ns - pss_taken_ns);
  }
  return sample;
}

}  // namespace tidemark::monitor
