// SPDX-License-Identifier: Apache-2.0
#include "recording/open.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/fd.h"
#include "common/io.h"
#include "common/text.h"
#include "recording/files.h"
#include "recording/import/importers.h"
#include "recording/import/text_input.h"
#include "recording/run_reader.h"

namespace tidemark::recording {
namespace {

constexpr std::string_view kSqliteStart = "SQLite format 3";

enum class Format { kEmpty, kSqlite, kCompressed, kUtf16, kBinary, kJson, kMprof, kPsrecord, kCsv };

Format format_of(std::string_view head) {
  if (head.empty()) {
    return Format::kEmpty;
  }
  if (head.starts_with(kSqliteStart)) {
    return Format::kSqlite;
  }
  for (const std::string_view magic :
       {"\x1F\x8B", "BZh", "\xFD\x37zXZ", "\x28\xB5\x2F\xFD", "PK\x03\x04"}) {
    if (head.starts_with(magic)) {
      return Format::kCompressed;
    }
  }
  if (head.starts_with("\xFF\xFE") || head.starts_with("\xFE\xFF")) {
    return Format::kUtf16;
  }
  if (head.starts_with(kByteOrderMark)) {
    head.remove_prefix(kByteOrderMark.size());
  }
  const std::string_view text = trim(head);
  if (text.starts_with('{') || text.starts_with('[')) {
    return Format::kJson;
  }
  if (looks_like_mprof(head)) {
    return Format::kMprof;
  }
  if (looks_like_psrecord(head)) {
    return Format::kPsrecord;
  }
  // A damaged log may have a NUL somewhere, but the first line of a text has none.
  const std::string_view first_line = head.substr(0, head.find('\n'));
  return first_line.find('\0') == std::string_view::npos ? Format::kCsv : Format::kBinary;
}

struct Target {
  std::string file;
  std::string series;  // of a JSON file; empty: all
};

// "FILE#ID", unless a file has that very name.
Target parse_target(const std::string& path) {
  const std::size_t hash = path.rfind('#');
  if (hash == std::string::npos || file_exists(path)) {
    return {path, {}};
  }
  return {path.substr(0, hash), path.substr(hash + 1)};
}

// A pipe that the shell opened, as in `tidemark track <(zcat log.csv.gz)`.
bool is_descriptor_path(const std::string& path) {
  return path == "/dev/stdin" || path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/");
}

Status check_kind_of_file(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return system_error(fmt::format("cannot open {}", path), errno);
  }
  if (S_ISREG(info.st_mode) || is_descriptor_path(path)) {
    return ok();
  }
  if (S_ISDIR(info.st_mode)) {
    return Error{Errc::kMalformed, fmt::format("{} is a directory, not a recording", path)};
  }
  return Error{Errc::kMalformed, fmt::format("{} is not a regular file; pipe it in and name it '-' "
                                             "if it holds a recording",
                                             path)};
}

// SQLite needs a file that it can seek in.
Result<std::unique_ptr<RecordingReader>> open_run_stream(TextInput input) {
  constexpr std::size_t kMaxStreamBytes = 4ULL << 30U;
  TIDEMARK_TRY_ASSIGN(auto directory, PrivateDir::create());
  TIDEMARK_TRY(input.spool_to(directory.file("run"), kMaxStreamBytes));
  return RunReader::open_spooled(std::move(directory), "run", input.name());
}

Error not_readable(const std::string& name, std::string_view why) {
  return Error{Errc::kMalformed, fmt::format("{} {}", name, why)};
}

Result<std::unique_ptr<RecordingReader>> open_text(Format format, TextInput input,
                                                   const std::string& series) {
  if (!series.empty() && format != Format::kJson) {
    return not_readable(input.name(),
                        "holds one recording: '#' picks a series of a JSON file only");
  }
  switch (format) {
    case Format::kEmpty:
      return not_readable(input.name(), "is empty");
    case Format::kCompressed:
      return not_readable(input.name(), "is compressed: unpack it first, or pipe it in as '-'");
    case Format::kUtf16:
      return not_readable(input.name(), "is UTF-16 text: save it as UTF-8");
    case Format::kSqlite:
    case Format::kBinary:
      return not_readable(input.name(),
                          "is not a recording: a run file, CSV, mprof, psrecord or JSON series");
    case Format::kJson:
      return open_json_series(std::move(input), series);
    case Format::kMprof:
      return open_mprof(std::move(input));
    case Format::kPsrecord:
      return open_psrecord(std::move(input));
    case Format::kCsv:
      break;
  }
  return open_csv(std::move(input));
}

Result<std::unique_ptr<RecordingReader>> open_standard_input() {
  Fd fd(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
  if (!fd) {
    return system_error("cannot read the standard input", errno);
  }
  TextInput input(std::move(fd), "standard input");
  const Format format = format_of(input.peek());
  if (input.error()) {
    return *input.error();
  }
  return format == Format::kSqlite ? open_run_stream(std::move(input))
                                   : open_text(format, std::move(input), {});
}

}  // namespace

Result<std::unique_ptr<RecordingReader>> open_recording(const std::string& path) {
  if (path == "-") {
    return open_standard_input();
  }
  const Target target = parse_target(path);
  TIDEMARK_TRY(check_kind_of_file(target.file));
  TIDEMARK_TRY_ASSIGN(auto fd, open_file(target.file, O_RDONLY));
  std::optional<TextInput> input(std::in_place, std::move(fd), target.file);
  const Format format = format_of(input->peek());
  if (input->error()) {
    return *input->error();
  }
  if (format != Format::kSqlite) {
    return open_text(format, std::move(*input), target.series);
  }
  if (is_descriptor_path(target.file)) {
    return open_run_stream(std::move(*input));
  }
  input.reset();  // closing it later would drop the locks of SQLite: see process_that_has_open()
  return RunReader::open(target.file);
}

bool is_run_file(const std::string& path) {
  if (path == "-" || is_descriptor_path(path) || !check_kind_of_file(path)) {
    return false;
  }
  auto fd = open_file(path, O_RDONLY);
  return fd && format_of(TextInput(std::move(*fd), path).peek()) == Format::kSqlite;
}

}  // namespace tidemark::recording
