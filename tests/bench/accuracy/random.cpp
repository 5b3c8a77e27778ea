// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/accuracy/random.h"

#include <bit>
#include <cmath>
#include <numbers>

namespace tidemark::bench {
namespace {

std::uint64_t splitmix(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15U;
  std::uint64_t z = state;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

}  // namespace

Random::Random(std::uint64_t seed, std::uint64_t stream) {
  std::uint64_t mixed = stream;
  std::uint64_t state = seed ^ splitmix(mixed);
  for (std::uint64_t& word : state_) {
    word = splitmix(state);
  }
}

std::uint64_t Random::next() {
  const std::uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
  const std::uint64_t shifted = state_[1] << 17U;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Random::uniform() { return static_cast<double>(next() >> 11U) * 0x1p-53; }

double Random::between(double low, double high) { return low + (high - low) * uniform(); }

double Random::log_between(double low, double high) {
  return std::exp(between(std::log(low), std::log(high)));
}

std::uint64_t Random::count(std::uint64_t low, std::uint64_t high) {
  return low + static_cast<std::uint64_t>(uniform() * static_cast<double>(high - low + 1));
}

bool Random::chance(double probability) { return uniform() < probability; }

// Box and Muller.
double Random::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_normal_;
  }
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  const double angle = 2.0 * std::numbers::pi * uniform();
  spare_normal_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

}  // namespace tidemark::bench
