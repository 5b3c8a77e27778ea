// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "tests/bench/accuracy/generator.h"
#include "tests/bench/accuracy/scoring.h"

namespace tidemark::bench {

// Runs that grow and settle, as one sees them live: whoever looks at any moment, without having
// said anything about the warm-up, must not be told that it leaks.
enum class SettlingKind { kIdleThenFill, kStaircaseWarmup, kLateJump };
inline constexpr std::uint64_t kSettlingKinds = 3;

// The kinds take turns.
inline SettlingKind settling_at(std::uint64_t index) {
  return static_cast<SettlingKind>(index % kSettlingKinds);
}
std::string_view settling_name(SettlingKind kind);

// `truth` holds only the end of the warm-up.
Curve generate_settling(std::uint64_t seed, std::uint64_t index);

// Judges `count` curves at 40 prefixes each, prints the table, adds the bar.
void judge_prefixes(std::uint64_t seed, std::uint64_t count, Bars& bars);

}  // namespace tidemark::bench
