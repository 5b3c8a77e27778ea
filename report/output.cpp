// SPDX-License-Identifier: Apache-2.0
#include "report/output.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/atomic_file.h"
#include "common/io.h"
#include "common/messages.h"
#include "common/units.h"

namespace tidemark::report {
namespace {

constexpr std::string_view kStdout = "-";

}  // namespace

ExportOutput ExportOutput::to_stdout() { return {}; }

Result<ExportOutput> ExportOutput::to_file(const std::string& path, bool replace) {
  ExportOutput output;
  TIDEMARK_TRY_ASSIGN(auto file, recording::PendingFile::create(path, replace));
  output.file_.emplace(std::move(file));
  TIDEMARK_TRY_ASSIGN(output.fd_, open_file(output.file_->temporary_path(), O_WRONLY));
  return output;
}

Status ExportOutput::write_if_full() {
  constexpr std::size_t kPieceBytes = 64U << 10U;
  return buffer_.size() < kPieceBytes ? ok() : write();
}

Status ExportOutput::write() {
  const FileSizeSignalBlock no_signal;
  Status status = write_all(file_ ? fd_.get() : STDOUT_FILENO, buffer_);
  buffer_.clear();
  return status ? status
                : recording::named(file_ ? file_->path() : "standard output", status.error());
}

Status ExportOutput::finish() {
  TIDEMARK_TRY(write());
  fd_.reset();
  return file_ ? file_->publish() : ok();
}

Status write_report_file(const std::string& path, std::string_view text) {
  const FileSizeSignalBlock no_signal;
  return path == kStdout ? write_all(STDOUT_FILENO, text) : write_file_atomically(path, text);
}

Status can_write_report(const std::string& path) {
  return path == kStdout ? ok() : can_write_file(path);
}

std::vector<std::string> read_notes(const recording::ReadSummary& summary) {
  std::vector<std::string> notes;
  if (summary.bad_lines > 0) {
    notes.push_back(fmt::format("note: {} of {} could not be used; the first is line {}: {}",
                                summary.bad_lines, format_count(summary.lines, "line"),
                                summary.first_bad_line, summary.first_bad_reason));
  }
  for (const std::string& note : summary.notes) {
    notes.push_back("note: " + note);
  }
  return notes;
}

void print_read_notes(const recording::ReadSummary& summary) {
  for (const std::string& note : read_notes(summary)) {
    print_note(note);
  }
}

std::optional<std::size_t> terminal_columns(int fd) {
  constexpr unsigned short kNarrowest = 20;
  winsize size{};
  return ::isatty(fd) == 1 && ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > kNarrowest
             ? std::optional<std::size_t>(size.ws_col)
             : std::nullopt;
}

std::optional<std::size_t> terminal_rows(int fd) {
  winsize size{};
  return ::isatty(fd) == 1 && ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row > 0
             ? std::optional<std::size_t>(size.ws_row)
             : std::nullopt;
}

ProfileStyle style_for(int fd, bool plain) {
  // Names in C++ are long: a wide terminal shows more of them, a narrow one must not break them.
  constexpr std::size_t kNarrowest = 72;
  constexpr std::size_t kWidest = 160;
  ProfileStyle style;
  style.glyphs = glyphs_of_locale();
  style.colour = !plain && ::isatty(fd) == 1;
  if (const auto columns = terminal_columns(fd)) {
    style.columns = std::clamp(*columns, kNarrowest, kWidest);
  }
  return style;
}

}  // namespace tidemark::report
