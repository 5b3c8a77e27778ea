// SPDX-License-Identifier: Apache-2.0
#include "dashboard/live_sources.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/proc_files.h"

namespace tidemark::dashboard {
namespace {

constexpr char kEscapeCharacter = '\x1b';

// Without control sequences (ESC [ ... letter), operating system commands (ESC ] ... BEL) and the
// like: https://ecma-international.org/publications-and-standards/standards/ecma-48/
std::string without_sequences(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != kEscapeCharacter) {
      text += line[i];
      continue;
    }
    ++i;
    if (i < line.size() && line[i] == '[') {
      ++i;
      while (i < line.size() && (line[i] < '@' || line[i] > '~')) {
        ++i;
      }
    } else if (i < line.size() && line[i] == ']') {
      while (i < line.size() && line[i] != '\a' && line[i] != kEscapeCharacter) {
        ++i;
      }
    }
  }
  return text;
}

// What a terminal would show of a line that was rewritten with \r.
std::string_view last_rewrite(std::string_view line) {
  while (!line.empty() && line.back() == '\r') {
    line.remove_suffix(1);
  }
  const std::size_t at = line.rfind('\r');
  return at == std::string_view::npos ? line : line.substr(at + 1);
}

}  // namespace

std::vector<std::string> last_lines(std::string_view bytes, std::size_t most) {
  std::vector<std::string> lines;
  for (const std::string_view line : split(bytes, '\n')) {
    std::string text = escape_text(without_sequences(last_rewrite(line)));
    if (!trim(text).empty()) {
      lines.push_back(std::move(text));
    }
  }
  if (lines.size() > most) {
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(most));
  }
  return lines;
}

bool OutputTail::refresh() {
  constexpr std::int64_t kLookBack = 8192;
  struct stat info {};
  if (path_.empty() || ::stat(path_.c_str(), &info) != 0 || info.st_size == size_) {
    return false;
  }
  size_ = info.st_size;
  const auto file = open_file(path_, O_RDONLY);
  if (!file) {
    return false;
  }
  std::array<char, kLookBack> buffer{};
  const std::int64_t from = std::max<std::int64_t>(0, size_ - kLookBack);
  const auto count = pread_full(file->get(), buffer, from);
  if (!count) {
    return false;
  }
  std::string_view bytes(buffer.data(), *count);
  if (from > 0) {  // the first line may be the rest of one
    const std::size_t end = bytes.find('\n');
    bytes.remove_prefix(end == std::string_view::npos ? 0 : end + 1);
  }
  lines_ = last_lines(bytes, kMostLines);
  return true;
}

void CpuMeter::sample(const std::vector<ProcessKey>& keys, double now_s) {
  static const auto kTicksPerSecond = static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::unordered_map<ProcessKey, Seen> seen;
  CpuShares shares;
  for (const ProcessKey& key : keys) {
    const auto text = read_file(fmt::format("{}/{}/stat", proc_, key.pid));
    const auto stat = text ? monitor::parse_stat(*text) : std::nullopt;
    if (!stat || stat->start_ticks != key.start_ticks) {
      continue;  // gone, or another one
    }
    seen[key] = {now_s, stat->cpu_ticks};
    const auto before = seen_.find(key);
    if (before != seen_.end() && now_s > before->second.at_s &&
        stat->cpu_ticks >= before->second.cpu_ticks) {
      shares[key] = static_cast<double>(stat->cpu_ticks - before->second.cpu_ticks) /
                    kTicksPerSecond / (now_s - before->second.at_s);
    }
  }
  seen_ = std::move(seen);
  shares_ = std::move(shares);
}

}  // namespace tidemark::dashboard
