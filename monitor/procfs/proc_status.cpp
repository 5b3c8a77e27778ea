// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/proc_status.h"

#include <array>
#include <limits>

#include "monitor/procfs/kernel_text.h"

namespace tidemark::monitor {
namespace {

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

}  // namespace

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

}  // namespace tidemark::monitor
