// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/thread_stacks.h"

#include <fcntl.h>

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/kernel_text.h"

namespace tidemark::heap {
namespace {

using inject::AddressRange;
using inject::Mapping;

constexpr std::size_t kMostThreads = 16'384;
constexpr std::uint64_t kSmallestStack = 16U << 10U;
constexpr std::uint64_t kLargestGuard = 1U << 20U;
// Descriptors of threads and guards make a stack a bit larger or smaller than its limit.
constexpr std::uint64_t kStackSlack = 128U << 10U;

bool may_be_stack(const Mapping& mapping) {
  return mapping.is_writable && !mapping.is_shared && mapping.name.empty();
}

bool has_guard(const std::vector<Mapping>& mappings, std::size_t i) {
  if (i == 0) {
    return false;
  }
  const Mapping& below = mappings[i - 1];
  return below.range.end == mappings[i].range.begin && !below.is_readable && !below.is_writable &&
         below.name.empty();
}

// Memory above may be one mapping with the stack.
AddressRange stack_in(const AddressRange& mapping, std::uint64_t stack_bytes) {
  const std::uint64_t bytes = mapping.end - mapping.begin;
  return bytes <= stack_bytes + kStackSlack
             ? mapping
             : AddressRange{mapping.begin, mapping.begin + stack_bytes};
}

}  // namespace

std::optional<std::uint64_t> parse_stack_pointer(std::string_view text) {
  const std::vector<std::string_view> words = split(trim(text), ' ');
  if (words.size() < 3) {
    return std::nullopt;
  }
  std::string_view word = words[words.size() - 2];
  if (!word.starts_with("0x")) {
    return std::nullopt;
  }
  word.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(word.data(), word.data() + word.size(), value, /*base=*/16);
  return error == std::errc{} && end == word.data() + word.size() ? std::optional(value)
                                                                  : std::nullopt;
}

std::vector<std::uint64_t> stack_pointers_of(const std::string& proc_root, pid_t pid) {
  std::vector<std::uint64_t> pointers;
  auto tasks =
      monitor::DirectoryStream::open_at(AT_FDCWD, fmt::format("{}/{}/task", proc_root, pid));
  std::size_t threads = 0;
  while (const dirent* entry = tasks && threads < kMostThreads ? tasks->next() : nullptr) {
    if (!parse_number<pid_t>(entry->d_name)) {
      continue;
    }
    ++threads;
    const auto text = read_file_at(tasks->fd(), std::string(entry->d_name) + "/syscall", 4096);
    if (const auto pointer = text ? parse_stack_pointer(*text) : std::nullopt) {
      pointers.push_back(*pointer);
    }
  }
  return pointers;
}

std::vector<AddressRange> find_thread_stacks(const std::vector<Mapping>& mappings,
                                             const std::vector<std::uint64_t>& pointers,
                                             std::size_t threads, std::uint64_t stack_bytes) {
  std::vector<AddressRange> stacks;
  std::vector<AddressRange> alike;
  std::vector<std::uint64_t> sorted = pointers;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < mappings.size(); ++i) {
    const AddressRange& range = mappings[i].range;
    const std::uint64_t bytes = range.end - range.begin;
    if (!may_be_stack(mappings[i]) || bytes < kSmallestStack) {
      continue;
    }
    const AddressRange stack = stack_in(range, stack_bytes);
    const auto pointer = std::lower_bound(sorted.begin(), sorted.end(), range.begin);
    const bool is_used = pointer != sorted.end() && stack.holds(*pointer);
    const bool is_guarded = has_guard(mappings, i);
    // Where a kernel guards without a mapping (6.14), the stack has to be all of it.
    if (is_used && (is_guarded || stack == range)) {
      stacks.push_back(stack);
    } else if (is_guarded && stack == range &&
               mappings[i - 1].range.end - mappings[i - 1].range.begin <= kLargestGuard) {
      alike.push_back(stack);
    }
  }
  const std::size_t missing = threads > stacks.size() ? threads - stacks.size() : 0;
  // The usual size first.
  std::stable_sort(alike.begin(), alike.end(), [&](const AddressRange& a, const AddressRange& b) {
    return a.end - a.begin > b.end - b.begin;
  });
  alike.resize(std::min(alike.size(), missing));
  stacks.insert(stacks.end(), alike.begin(), alike.end());
  std::sort(stacks.begin(), stacks.end(),
            [](const AddressRange& a, const AddressRange& b) { return a.begin < b.begin; });
  return stacks;
}

}  // namespace tidemark::heap
