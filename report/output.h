// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/fd.h"
#include "common/result.h"
#include "recording/files.h"
#include "recording/reader.h"
#include "report/chart_text.h"

// Where reports go: files, the standard output, a terminal and its width.
namespace tidemark::report {

// Where exported text goes: the standard output, or a file that appears when it is complete.
class ExportOutput {
 public:
  static ExportOutput to_stdout();
  static Result<ExportOutput> to_file(const std::string& path, bool replace);

  // Text is collected here and written in large pieces.
  std::string& buffer() { return buffer_; }
  Status write_if_full();
  Status finish();

 private:
  ExportOutput() = default;
  Status write();

  std::optional<recording::PendingFile> file_;  // nullopt: stdout
  Fd fd_;
  std::string buffer_;
};

// A report is replaced as a whole (common/atomic_file.h); "-" is the standard output.
Status write_report_file(const std::string& path, std::string_view text);

// Whether write_report_file() could work, asked before there is something to write. Creates
// nothing.
Status can_write_report(const std::string& path);

// What a reader of the result should know about the recording, a line each.
std::vector<std::string> read_notes(const recording::ReadSummary& summary);
// Prints them on stderr.
void print_read_notes(const recording::ReadSummary& summary);

// The layout of a report of `tidemark profile`.
struct ProfileStyle {
  Glyphs glyphs = Glyphs::kAscii;
  bool colour = false;  // of a terminal
  std::size_t columns = 100;
};

// How wide and high the terminal behind a descriptor is; nullopt: it is none, or its size is
// unknown.
std::optional<std::size_t> terminal_columns(int fd);
std::optional<std::size_t> terminal_rows(int fd);

// For what is printed to this descriptor. `plain`: as if it were no terminal.
ProfileStyle style_for(int fd, bool plain);

}  // namespace tidemark::report
