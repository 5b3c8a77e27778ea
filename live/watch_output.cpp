// SPDX-License-Identifier: Apache-2.0
#include "live/watch_output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "common/messages.h"
#include "common/units.h"

namespace tidemark::live {
namespace {

// The signal to stop was perhaps meant for the command: a reader that does read gets its lines.
constexpr int kLastLinesMs = 200;

void finish_writing(LineWriter& writer, const std::function<bool(int fd)>& wait) {
  writer.close();
  if (!wait(writer.ended_fd())) {
    pollfd ended{writer.ended_fd(), POLLIN, 0};
    ::poll(&ended, 1, kLastLinesMs);
  }
}

}  // namespace

Result<WatchOutput> WatchOutput::open(int stderr_fd, std::optional<int> lines_fd) {
  TIDEMARK_TRY_ASSIGN(auto messages, LineWriter::open(stderr_fd));
  WatchOutput output(std::move(messages));
  if (lines_fd) {
    TIDEMARK_TRY_ASSIGN(auto lines, LineWriter::open(*lines_fd));
    output.output_.emplace(std::move(lines));
  }
  return output;
}

bool WatchOutput::check_lines() {
  const auto failure = lines().error();
  if (failure && !std::exchange(lines_failed_, true) && failure->sys_errno != EPIPE) {
    is_incomplete_ = true;
    error(fmt::format("the output is incomplete: {}", failure->what));
  }
  return !lines_failed_;
}

int WatchOutput::lines_ended_fd() { return lines_failed_ ? -1 : lines().ended_fd(); }

std::uint64_t WatchOutput::take_dropped() {
  const std::uint64_t dropped = lines().take_dropped();
  dropped_ += dropped;
  return dropped;
}

void WatchOutput::tell_dropped() {
  take_dropped();
  if (dropped_ > 0) {
    note(fmt::format("lines_dropped: {} not shown, nobody read {} in time",
                     format_count(dropped_, "line was", "lines were"),
                     plural(dropped_, "it", "them")));
  }
}

void WatchOutput::say(std::string text) {
  if (!listener_ || !listener_(text)) {
    messages_.submit_always(std::move(text));
  }
}

void WatchOutput::note(std::string_view text) { say(note_text(text)); }

void WatchOutput::error(std::string_view what, std::string_view hint) {
  say(error_text(what, hint));
}

void WatchOutput::flush(const std::function<bool(int fd)>& wait) {
  if (output_) {
    finish_writing(*output_, wait);
  }
  check_lines();
  finish_writing(messages_, wait);
  check_lines();
}

std::vector<std::string> segment_notes(const std::optional<monitor::ShmReport>& report,
                                       std::optional<std::uint64_t> used_bytes) {
  constexpr std::uint64_t kWorthANote = 64 * kMiB;
  std::vector<std::string> notes;
  if (!report || !report->unheld_bytes) {
    if (used_bytes.value_or(0) >= kWorthANote) {
      notes.push_back(
          fmt::format("note: /dev/shm holds {}; the run was too short to find out whether any "
                      "process has it open",
                      format_bytes(*used_bytes)));
    }
    return notes;
  }
  if (report->others_unheld_bytes >= kWorthANote) {
    notes.push_back(
        fmt::format("note: /dev/shm holds {} more that no process has open; nothing shows "
                    "that this job made it",
                    format_bytes(report->others_unheld_bytes)));
  }
  if (report->job_unknown_bytes >= kWorthANote) {
    notes.push_back(
        fmt::format("note: /dev/shm holds {} of this job; whether a process has it open is not "
                    "known, because some processes may not be read; root may",
                    format_bytes(report->job_unknown_bytes)));
  }
  for (const monitor::ShmSegment& segment : report->largest_unheld) {
    const std::string owner = segment.owner_pid
                                  ? fmt::format(", made by pid {}{}", *segment.owner_pid,
                                                segment.owner_alive.value_or(true) ? "" : " (dead)")
                                  : "";
    notes.push_back(fmt::format("note: /dev/shm/{} holds {} and no process has it open{}",
                                segment.path, format_bytes(segment.allocated_bytes), owner));
  }
  return notes;
}

}  // namespace tidemark::live
