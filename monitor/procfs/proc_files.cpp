// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/proc_files.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>

#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/kernel_text.h"

namespace tidemark::monitor {
namespace {

// Positions in proc(5) count from 1 and the fields after the name begin with the 3rd.
constexpr std::size_t kFirstPosition = 3;
constexpr std::size_t kLastPosition = 28;

using Words = std::array<std::string_view, kLastPosition - kFirstPosition + 1>;

template <typename T>
bool read_field(const Words& words, std::size_t position, T& out) {
  const auto number = parse_number<T>(words[position - kFirstPosition]);
  if (number) {
    out = *number;
  }
  return number.has_value();
}

// "PID/stat" below /proc, without an allocation.
struct StatPath {
  explicit StatPath(pid_t pid) {
    char* const end = std::to_chars(text.data(), text.data() + 16, pid).ptr;
    std::memcpy(end, "/stat", sizeof "/stat");
  }
  std::array<char, 24> text{};
};

struct MemoryLine {
  std::string_view key;
  std::optional<std::uint64_t> StatusFields::*field;
};

constexpr std::array<MemoryLine, 6> kMemoryLines{{
    {"VmHWM", &StatusFields::hwm_bytes},
    {"VmRSS", &StatusFields::rss_bytes},
    {"RssAnon", &StatusFields::rss_anon_bytes},
    {"RssFile", &StatusFields::rss_file_bytes},
    {"RssShmem", &StatusFields::rss_shmem_bytes},
    {"VmSwap", &StatusFields::swap_bytes},
}};

template <typename T>
std::optional<T> narrow(std::optional<std::uint64_t> number) {
  if (!number || *number > static_cast<std::uint64_t>(std::numeric_limits<T>::max())) {
    return std::nullopt;
  }
  return static_cast<T>(*number);
}

// The kernel writes a newline in a name as "\n" and a backslash as "\\".
std::string unescape_comm(std::string_view text) {
  if (text.find('\\') == std::string_view::npos) {
    return std::string(text);
  }
  std::string comm;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == 'n' || text[i + 1] == '\\')) {
      ++i;
      comm += text[i] == 'n' ? '\n' : '\\';
    } else {
      comm += text[i];
    }
  }
  return comm;
}

std::string_view last_word(std::string_view text) {
  std::string_view last;
  for (std::string_view word = take_word(text); !word.empty(); word = take_word(text)) {
    last = word;
  }
  return last;
}

void apply_memory(StatusFields& fields, std::string_view key, std::string_view value) {
  for (const MemoryLine& line : kMemoryLines) {
    // The last letters differ; comparing them first saves most calls of memcmp.
    if (key.back() == line.key.back() && key == line.key) {
      fields.*line.field = kib_field_bytes(value);
      return;
    }
  }
}

void apply_identity(StatusFields& fields, std::string_view key, std::string_view value) {
  if (key == "Name") {
    value.remove_prefix(value.starts_with('\t') ? 1 : 0);  // one tab; blanks belong to the name
    fields.comm = unescape_comm(value);
  } else if (key == "State") {
    const std::string_view state = take_word(value);
    fields.state = state.empty() ? '?' : state.front();
  } else if (key == "PPid") {
    fields.ppid = narrow<pid_t>(leading_number(value)).value_or(0);
  } else if (key == "Uid") {
    take_word(value);  // the real one; the effective one follows
    fields.uid = narrow<uid_t>(leading_number(value)).value_or(0);
  } else if (key == "NSpid") {
    fields.innermost_pid = narrow<pid_t>(leading_number(last_word(value)));
  }
}

struct MeminfoLine {
  std::string_view key;
  std::optional<std::uint64_t> MeminfoFields::*field;
};

constexpr std::array<MeminfoLine, 5> kMeminfoLines{{
    {"MemTotal", &MeminfoFields::total_bytes},
    {"MemAvailable", &MeminfoFields::available_bytes},
    {"SwapTotal", &MeminfoFields::swap_total_bytes},
    {"SwapFree", &MeminfoFields::swap_free_bytes},
    {"Shmem", &MeminfoFields::shmem_bytes},
}};

std::optional<double> avg10(std::string_view line) {
  constexpr std::string_view kKey = "avg10=";
  const std::string_view word = take_word(line);
  const auto percent =
      word.starts_with(kKey) ? parse_number<double>(word.substr(kKey.size())) : std::nullopt;
  return percent && *percent >= 0.0 && *percent <= 100.0 ? percent : std::nullopt;
}

}  // namespace

std::optional<StatFields> parse_stat(std::string_view text) {
  const std::size_t open = text.find(" (");
  // The last one: the name may hold parentheses, what follows it cannot.
  const std::size_t close = text.rfind(") ");
  if (open == std::string_view::npos || close == std::string_view::npos || close < open + 2) {
    return std::nullopt;
  }
  StatFields fields;
  const auto pid = parse_number<pid_t>(text.substr(0, open));
  fields.comm = text.substr(open + 2, close - open - 2);
  std::string_view rest = text.substr(close + 2);
  Words words;
  for (std::string_view& word : words) {
    word = take_word(rest);
  }
  // A kernel thread's or a hidden process's counters may be 0, never absent.
  std::uint64_t user_ticks = 0;
  std::uint64_t system_ticks = 0;
  if (!pid || words[0].size() != 1 || !read_field(words, 4, fields.ppid) ||
      !read_field(words, 5, fields.process_group) || !read_field(words, 6, fields.session) ||
      !read_field(words, 14, user_ticks) || !read_field(words, 15, system_ticks) ||
      !read_field(words, 20, fields.threads) || !read_field(words, 22, fields.start_ticks) ||
      !read_field(words, 28, fields.stack_start)) {
    return std::nullopt;
  }
  fields.pid = *pid;
  fields.state = words[0].front();
  fields.cpu_ticks = user_ticks + system_ticks;
  return fields;
}

std::optional<StatFields> read_stat(int proc_directory, pid_t pid) {
  const int fd = ::openat(proc_directory, StatPath(pid).text.data(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return std::nullopt;
  }
  std::array<char, 1024> buffer;
  ssize_t size = 0;
  do {
    size = ::read(fd, buffer.data(), buffer.size());
  } while (size < 0 && errno == EINTR);
  ::close(fd);
  auto fields = parse_stat({buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))});
  if (fields) {
    fields->comm = {};  // the text goes
  }
  return fields;
}

bool has_ended(char state) { return state == 'Z' || state == 'X' || state == 'x'; }

bool has_ended(const StatFields& process) {
  return has_ended(process.state) && process.threads <= 1;
}

Result<StatmFields> parse_statm(std::string_view text) {
  const auto size = parse_number<std::uint64_t>(take_word(text));
  const auto resident = parse_number<std::uint64_t>(take_word(text));
  const auto shared = parse_number<std::uint64_t>(take_word(text));
  if (!size || !resident || !shared) {
    return Error{Errc::kMalformed, "not a /proc/PID/statm line"};
  }
  return StatmFields{*size, *resident, *shared};
}

Result<StatusFields> parse_status(std::string_view text) {
  StatusFields fields;
  bool named = false;
  std::string_view line;
  while (take_line(text, line)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) {
      continue;
    }
    const std::string_view key = line.substr(0, colon);
    const std::string_view value = line.substr(colon + 1);
    if (key[0] == 'V' || key[0] == 'R') {
      apply_memory(fields, key, value);
    } else if (key == "Threads") {
      fields.threads = narrow<std::uint32_t>(leading_number(value));
      break;  // signals, capabilities and CPU masks follow: half of the text, nothing for us
    } else {
      named = named || key == "Name";
      apply_identity(fields, key, value);
    }
  }
  if (!named || fields.state == '?') {
    return Error{Errc::kMalformed, "not a /proc/PID/status: no Name or no State line"};
  }
  return fields;
}

MeminfoFields parse_meminfo(std::string_view text) {
  MeminfoFields fields;
  std::string_view line;
  while (take_line(text, line)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) {
      continue;
    }
    for (const MeminfoLine& known : kMeminfoLines) {
      if (line.substr(0, colon) == known.key) {
        fields.*known.field = kib_field_bytes(line.substr(colon + 1));
      }
    }
  }
  return fields;
}

PressureFields parse_pressure(std::string_view text) {
  PressureFields fields;
  std::string_view line;
  while (take_line(text, line)) {
    const std::string_view kind = take_word(line);
    if (kind == "some") {
      fields.some_avg10 = avg10(line);
    } else if (kind == "full") {
      fields.full_avg10 = avg10(line);
    }
  }
  return fields;
}

bool has_raised_privileges(const std::string& process_folder) {
  constexpr std::size_t kMostBytes = 64U << 10U;
  const auto bytes = read_file(process_folder + "/auxv", kMostBytes);
  Elf64_auxv_t entry{};
  for (std::size_t at = 0; bytes && at + sizeof entry <= bytes->size(); at += sizeof entry) {
    std::memcpy(&entry, bytes->data() + at, sizeof entry);
    if (entry.a_type == AT_SECURE) {
      return entry.a_un.a_val != 0;
    }
  }
  return false;
}

}  // namespace tidemark::monitor
