// SPDX-License-Identifier: Apache-2.0
// A cache of random keys that evicts its oldest entry when it is full. Most lookups miss at first
// and fewer and fewer later, so it grows ever more slowly, up to its cap: long, and no leak.
#include <cstdint>
#include <deque>
#include <unordered_map>

#include "tests/programs/memory_victim.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

namespace {

class Cache {
 public:
  Cache(double cap_mb, double entry_mb)
      : most_entries_(static_cast<std::size_t>(cap_mb / entry_mb)), entry_mb_(entry_mb) {}

  void look_up(std::uint32_t key) {
    if (entries_.contains(key)) {
      return;
    }
    if (entries_.size() == most_entries_) {
      entries_.erase(by_age_.front());
      by_age_.pop_front();
    }
    entries_.emplace(key, Block(entry_mb_));
    by_age_.push_back(key);
  }

 private:
  std::size_t most_entries_;
  double entry_mb_;
  std::unordered_map<std::uint32_t, Block> entries_;
  std::deque<std::uint32_t> by_age_;
};

// The same keys in every run.
class Keys {
 public:
  explicit Keys(double count) : count_(static_cast<std::uint32_t>(count)) {}
  std::uint32_t next() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::uint32_t>(state_ >> 33U) % count_;
  }

 private:
  std::uint64_t state_ = 1;
  std::uint32_t count_;
};

}  // namespace

int main(int argc, char** argv) {
  Pace pace;
  double base_mb = 64;
  double cap_mb = 150;
  double entry_mb = 0.25;
  double key_count = 1000;
  double lookups = 8;  // at each step
  parse_options(argc, argv, pace,
                {{"--base-mb", &base_mb},
                 {"--cap-mb", &cap_mb},
                 {"--entry-mb", &entry_mb},
                 {"--keys", &key_count},
                 {"--lookups", &lookups}});
  print_truth(
      "cache_with_cap", "warmup", pace,
      {{"base_bytes", base_mb * kMegabyte}, {"settled_bytes", (base_mb + cap_mb) * kMegabyte}});

  const Block base(base_mb);
  Cache cache(cap_mb, entry_mb);
  Keys keys(key_count);
  run_steps(pace, [&](long) {
    for (int i = 0; i < static_cast<int>(lookups); ++i) {
      cache.look_up(keys.next());
    }
  });
}
