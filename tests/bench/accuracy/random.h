// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace tidemark::bench {

// xoshiro256++, seeded through splitmix64. The distributions are our own: those of the standard
// library give other numbers with every implementation of it.
class Random {
 public:
  // Two pairs give two streams that have nothing to do with each other.
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0);

  std::uint64_t next();
  double uniform();  // [0, 1)
  double between(double low, double high);
  double log_between(double low, double high);                 // uniform in the logarithm
  std::uint64_t count(std::uint64_t low, std::uint64_t high);  // both ends included
  bool chance(double probability);
  double normal();  // mean 0, standard deviation 1

 private:
  std::array<std::uint64_t, 4> state_{};
  double spare_normal_ = 0.0;
  bool has_spare_ = false;
};

}  // namespace tidemark::bench
