// SPDX-License-Identifier: Apache-2.0
#include "report/export_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "common/io.h"
#include "recording/files.h"

namespace tidemark::report {
namespace {

constexpr std::size_t kPieceBytes = 64U << 10U;

}  // namespace

ExportOutput ExportOutput::to_stdout() { return {}; }

Result<ExportOutput> ExportOutput::to_file(const std::string& path, bool replace) {
  auto file = recording::PendingFile::create(path, replace);
  if (!file) {
    return file.error();
  }
  auto fd = open_file(file->temporary_path(), O_WRONLY);
  if (!fd) {
    return fd.error();
  }
  ExportOutput output;
  output.file_.emplace(std::move(*file));
  output.fd_ = std::move(*fd);
  return output;
}

Status ExportOutput::write_if_full() { return buffer_.size() < kPieceBytes ? ok() : write(); }

Status ExportOutput::write() {
  const FileSizeSignalBlock no_signal;
  Status status = write_all(file_ ? fd_.get() : STDOUT_FILENO, buffer_);
  buffer_.clear();
  return status ? status
                : recording::named(file_ ? file_->path() : "standard output", status.error());
}

Status ExportOutput::finish() {
  if (Status status = write(); !status) {
    return status;
  }
  fd_.reset();
  return file_ ? file_->publish() : ok();
}

}  // namespace tidemark::report
