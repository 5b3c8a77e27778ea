// SPDX-License-Identifier: Apache-2.0
#include "guard/restart.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace tidemark::guard {

RestartAnswer RestartLedger::ended(const ChunkEnd& end) {
  if (!enabled_ || end.by == EndedBy::kItself || end.by == EndedBy::kUser) {
    return {};
  }
  const auto before = best_step_;
  if (end.last_step) {
    best_step_ = std::max(best_step_.value_or(*end.last_step), *end.last_step);
  }
  if (restarts_ >= most_) {
    return {false, fmt::format("not started again: --max-restarts {} are used up", most_)};
  }
  if (before && (!end.last_step || *end.last_step <= *before)) {
    return {false, fmt::format("not started again: it has not come beyond step {} since the last "
                               "start; does it write and resume checkpoints?",
                               *before)};
  }
  if (!end.last_step && went_without_steps_) {
    return {false,
            "not started again: no steps are known, so nobody can tell whether it gets on; mark "
            "them or give --step-regex"};
  }
  went_without_steps_ = went_without_steps_ || !end.last_step;
  ++restarts_;
  return {true, end.last_step
                    ? fmt::format("starting it again ({} of {} restarts) after step {}", restarts_,
                                  most_, *end.last_step)
                    : fmt::format("starting it again ({} of {} restarts), only once: no "
                                  "steps are known, so nobody can tell whether it gets on",
                                  restarts_, most_)};
}

std::string chunk_output(const std::string& output, std::uint64_t n) {
  if (output.empty() || n == 1) {
    return output;
  }
  const std::size_t slash = output.rfind('/');
  const std::size_t dot = output.rfind('.');
  const bool has_ending =
      dot != std::string::npos && dot > 0 && (slash == std::string::npos || dot > slash + 1);
  const std::size_t at = has_ending ? dot : output.size();
  return fmt::format("{}.{}{}", output.substr(0, at), n, output.substr(at));
}

}  // namespace tidemark::guard
