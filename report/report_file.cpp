// SPDX-License-Identifier: Apache-2.0
#include "report/report_file.h"

#include <unistd.h>

#include "common/atomic_file.h"
#include "common/io.h"

namespace tidemark::report {
namespace {

constexpr std::string_view kStdout = "-";

}  // namespace

Status write_report_file(const std::string& path, std::string_view text) {
  const FileSizeSignalBlock no_signal;
  return path == kStdout ? write_all(STDOUT_FILENO, text) : write_file_atomically(path, text);
}

Status can_write_report(const std::string& path) {
  return path == kStdout ? ok() : can_write_file(path);
}

}  // namespace tidemark::report
