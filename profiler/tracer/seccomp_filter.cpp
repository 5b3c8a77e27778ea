// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/seccomp_filter.h"

#include <linux/seccomp.h>

#include <cstdint>

#include "profiler/tracer/unwind/stack_bounds.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {
namespace {

bool is_readable_range(const void* begin, std::size_t bytes) noexcept {
  constexpr std::uint64_t kPage = 4096;
  constexpr std::uint64_t kWord = 8;  // that is_readable() reads
  const auto first = reinterpret_cast<std::uint64_t>(begin);
  for (std::uint64_t at = first; at < first + bytes; at = (at & ~(kPage - 1)) + kPage) {
    if (!is_readable(at)) {
      return false;
    }
  }
  return bytes < kWord || is_readable(first + bytes - kWord);
}

}  // namespace

bool may_harm(const sock_filter* filter, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    if (BPF_CLASS(filter[i].code) != BPF_RET) {
      continue;
    }
    const std::uint32_t action = filter[i].k & SECCOMP_RET_ACTION_FULL;
    const bool fails = action == SECCOMP_RET_ERRNO && (filter[i].k & SECCOMP_RET_DATA) != 0;
    if (BPF_RVAL(filter[i].code) != BPF_K ||
        (action != SECCOMP_RET_ALLOW && action != SECCOMP_RET_LOG && !fails)) {
      return true;
    }
  }
  return false;
}

bool may_harm(const sock_fprog* program) noexcept {
  return is_readable_range(program, sizeof(*program)) &&
         is_readable_range(program->filter, program->len * sizeof(sock_filter)) &&
         may_harm(program->filter, program->len);
}

}  // namespace tidemark::tracer
