// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/fd.h"
#include "common/result.h"
#include "recording/files.h"

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

}  // namespace tidemark::report
