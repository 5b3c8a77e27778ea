// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/proc_stat.h"

#include <array>
#include <optional>

#include "common/text.h"
#include "monitor/procfs/kernel_text.h"

namespace tidemark::monitor {
namespace {

Error malformed() { return Error{Errc::kMalformed, "not a /proc/PID/stat line"}; }

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

}  // namespace

Result<StatFields> parse_stat(std::string_view text) {
  const std::size_t open = text.find(" (");
  // The last one: the name may hold parentheses, what follows it cannot.
  const std::size_t close = text.rfind(") ");
  if (open == std::string_view::npos || close == std::string_view::npos || close < open + 2) {
    return malformed();
  }
  StatFields fields;
  const auto pid = parse_number<pid_t>(text.substr(0, open));
  fields.comm = std::string(text.substr(open + 2, close - open - 2));
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
    return malformed();
  }
  fields.pid = *pid;
  fields.state = words[0].front();
  fields.cpu_ticks = user_ticks + system_ticks;
  return fields;
}

}  // namespace tidemark::monitor
