// SPDX-License-Identifier: Apache-2.0
#include "live/sparse_ticks.h"

#include <iterator>
#include <utility>
#include <vector>

namespace tidemark::live {
namespace {

template <typename Fact>
void prepend(std::vector<Fact>& to, std::vector<Fact> facts) {
  facts.insert(facts.end(), std::make_move_iterator(to.begin()), std::make_move_iterator(to.end()));
  to = std::move(facts);
}

}  // namespace

std::optional<Tick> SparseTicks::add(Tick tick) {
  if (left_out_) {
    prepend(tick.new_processes, std::move(left_out_->new_processes));
    prepend(tick.markers, std::move(left_out_->markers));
    prepend(tick.events, std::move(left_out_->events));
    prepend(tick.losses, std::move(left_out_->losses));
    left_out_.reset();
  }
  // Call stacks are sampled only when they have changed, and heaps and memory maps a few times.
  if (count_ < tick.processes.size() / kProcessesPerTick && tick.allocations.empty() &&
      tick.heap.empty() && tick.interventions.empty() && tick.ledgers.empty()) {
    ++count_;
    left_out_ = std::move(tick);
    return std::nullopt;
  }
  count_ = 0;
  return tick;
}

std::optional<Tick> SparseTicks::take_last() { return std::exchange(left_out_, std::nullopt); }

}  // namespace tidemark::live
