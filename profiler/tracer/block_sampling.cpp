// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/block_sampling.h"

#include <atomic>

#include "profiler/tracer/sys.h"
#include "profiler/tracer/thread_state.h"
#include "profiler/wire/sampling.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

constinit std::atomic<std::uint64_t> g_seeds = 0;

// Differs between threads by a counter, because a new thread mostly has the addresses of one that
// ended; between processes and runs by the time and the layout of the address space.
std::uint64_t new_seed() noexcept {
  const std::uint64_t counter = g_seeds.fetch_add(0x9e3779b97f4a7c15, kRelaxed);
  const auto address = reinterpret_cast<std::uint64_t>(&t_thread);
  return wire::mix(wire::mix(address ^ sys::monotonic_ns()) + counter) | 1U;
}

// False: more periods were used than the file has places for.
bool index_of_period(wire::Header& header, std::uint64_t period_bytes,
                     std::uint8_t& index) noexcept {
  for (std::uint32_t i = 0; i < wire::kMaxPeriods; ++i) {
    std::uint64_t listed = header.periods[i].load(kRelaxed);
    if (listed == 0 && i > 0 &&
        header.periods[i].compare_exchange_strong(listed, period_bytes, kRelaxed)) {
      header.period_count.fetch_add(1, kRelaxed);
      listed = period_bytes;
    }
    if (listed == period_bytes) {
      index = static_cast<std::uint8_t>(i);
      return true;
    }
  }
  header.losses.sites_full.fetch_add(1, kRelaxed);
  return false;
}

}  // namespace

bool sample_block(wire::Header& header, std::size_t bytes, std::uint8_t& period) noexcept {
  ThreadState& thread = t_thread;
  const std::uint64_t every = header.control.sample_every_bytes.load(kRelaxed);
  if (thread.random == 0) {
    thread.random = new_seed();
  }
  std::uint64_t gap = thread.remaining + thread.remaining_later;
  if (gap == 0 || thread.period == kNoPeriod) {
    gap = draw_gap(thread.random, every);
    thread.period = every;
  }
  if (bytes < gap) {  // also for a recorded block that is resized: it is sampled again
    thread.set_gap(gap - bytes);
    return false;
  }
  const std::uint64_t drawn_for = thread.period;  // a new period begins with the next gap
  thread.period = every;
  thread.set_gap(draw_gap(thread.random, every));
  return index_of_period(header, drawn_for, period);
}

SiteCount count_of_sample(const wire::Header& header, const wire::LiveRecord& record) noexcept {
  const std::uint64_t bytes = wire::unpack_size(record.size_and_period);
  const std::uint8_t index = wire::unpack_period(record.size_and_period);
  const std::uint64_t period = header.periods[index % wire::kMaxPeriods].load(kRelaxed);
  const double weight = wire::sample_weight(bytes, period);
  return {static_cast<std::uint64_t>(static_cast<double>(bytes) * weight + 0.5),
          static_cast<std::uint64_t>(static_cast<double>(wire::kBlockUnit) * weight + 0.5)};
}

}  // namespace tidemark::tracer
