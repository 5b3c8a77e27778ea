// SPDX-License-Identifier: Apache-2.0
#include "monitor/markers/step_pattern.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "common/check.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace tidemark::monitor {
namespace {

constexpr std::size_t kMaxPatternBytes = 1000;

// Of one line. PCRE2's match limit begins anew at every byte of the line, so that it alone would
// allow 4096 times as much; the items of the pattern that are tried are counted over all of it.
constexpr std::uint32_t kMaxWork = 100'000;
constexpr std::uint32_t kMatchLimit = kMaxWork;
constexpr std::uint32_t kDepthLimit = 50'000;
constexpr std::uint32_t kHeapLimitKib = 8U << 10U;

template <auto kFree>
struct Deleter {
  void operator()(auto* object) const { kFree(object); }
};
using Code = std::unique_ptr<pcre2_code, Deleter<pcre2_code_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Deleter<pcre2_match_data_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Deleter<pcre2_match_context_free>>;

int count_work(pcre2_callout_block* /*block*/, void* work) {
  return ++*static_cast<std::uint32_t*>(work) > kMaxWork ? PCRE2_ERROR_MATCHLIMIT : 0;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<std::int64_t> first_number(std::string_view text) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const auto first = std::find_if(text.begin(), text.end(), is_digit);
  if (first == text.end()) {
    return std::nullopt;
  }
  std::int64_t number = 0;
  for (auto at = first; at != text.end(); ++at) {
    const bool separator =
        (*at == ',' || *at == '_') && at + 1 != text.end() && is_digit(*(at + 1));
    if (separator) {
      continue;
    }
    if (!is_digit(*at)) {
      break;
    }
    const int digit = *at - '0';
    if (number > (kMax - digit) / 10) {
      return std::nullopt;
    }
    number = number * 10 + digit;
  }
  return number;
}

}  // namespace

struct StepPattern::Compiled {
  Code code;
  std::size_t step_group = 0;  // 0: the whole match
};

StepPattern::StepPattern(std::shared_ptr<const Compiled> compiled)
    : compiled_(std::move(compiled)) {}

Result<StepPattern> StepPattern::compile(std::string_view pattern) {
  if (pattern.size() > kMaxPatternBytes) {
    return Error{Errc::kUsage, fmt::format("longer than {} bytes", kMaxPatternBytes)};
  }
  int problem = 0;
  std::size_t offset = 0;
  auto compiled = std::make_shared<Compiled>();
  compiled->code.reset(::pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                       PCRE2_NEVER_UTF | PCRE2_NEVER_UCP | PCRE2_AUTO_CALLOUT,
                                       &problem, &offset, nullptr));
  if (!compiled->code) {
    std::array<PCRE2_UCHAR, 256> message{};
    ::pcre2_get_error_message(problem, message.data(), message.size());
    return Error{Errc::kUsage, fmt::format("column {}: {}", offset + 1,
                                           reinterpret_cast<const char*>(message.data()))};
  }
  std::uint32_t groups = 0;
  ::pcre2_pattern_info(compiled->code.get(), PCRE2_INFO_CAPTURECOUNT, &groups);
  compiled->step_group = groups > 0 ? 1 : 0;
  return StepPattern(std::move(compiled));
}

StepSearch StepPattern::search(std::string_view line) const {
  const MatchData data(::pcre2_match_data_create(2, nullptr));
  const MatchContext context(::pcre2_match_context_create(nullptr));
  TIDEMARK_CHECK(data && context, "memory for a match");
  std::uint32_t work = 0;
  ::pcre2_set_callout(context.get(), count_work, &work);
  ::pcre2_set_match_limit(context.get(), kMatchLimit);
  ::pcre2_set_depth_limit(context.get(), kDepthLimit);
  ::pcre2_set_heap_limit(context.get(), kHeapLimitKib);
  const int found =
      ::pcre2_match(compiled_->code.get(), reinterpret_cast<PCRE2_SPTR>(line.data()), line.size(),
                    /*startoffset=*/0, /*options=*/0, data.get(), context.get());
  if (found < 0) {
    return {std::nullopt, found != PCRE2_ERROR_NOMATCH, work};
  }
  const PCRE2_SIZE* const places = ::pcre2_get_ovector_pointer(data.get());
  const PCRE2_SIZE begin = places[2 * compiled_->step_group];
  const PCRE2_SIZE end = places[2 * compiled_->step_group + 1];
  // An alternative without the group; or \K in a look-ahead, which may begin behind the end.
  if (begin == PCRE2_UNSET || begin > end) {
    return {std::nullopt, false, work};
  }
  return {first_number(line.substr(begin, end - begin)), false, work};
}

}  // namespace tidemark::monitor
