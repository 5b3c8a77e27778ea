// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/live_table.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "profiler/reader/trace_image.h"
#include "profiler/wire/sampling.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::reader {
namespace {

// Where both kinds are there, the steps are what the reader wants to see.
constexpr std::size_t kSecondsBesideSteps = 8;

bool is_step(std::uint32_t epoch) { return (epoch & wire::kEpochIsStep) != 0; }
std::uint32_t number_of(std::uint32_t epoch) { return epoch & ~wire::kEpochIsStep; }

using wire::LiveBucket;
using wire::LiveRecord;
using wire::MapRange;
using wire::Table;

constexpr std::size_t kChunkBuckets = 1024;
constexpr std::size_t kChunkRanges = 4096;
constexpr std::uint32_t kNoPlace = 0xffff'ffff;
constexpr std::uint32_t kAmongOthers = kNoPlace - 1;

std::uint64_t address_of(const LiveBucket& bucket, std::size_t slot) {
  return bucket.address[slot].load(std::memory_order_relaxed);
}

// Adds blocks up by site.
class SiteSums {
 public:
  SiteSums(const TraceHeader& header, const AgeScale& scale, const LiveScanOptions& options,
           LiveScan& out)
      : options_(options), scale_(scale), out_(out) {
    const TableView& sites = header.table(Table::kSites);
    const Bound bound = bounded(header.used(Table::kSites), readable_end(sites), kMostSites);
    place_.resize(static_cast<std::size_t>(bound.end), kNoPlace);
    kept_.resize(place_.size(), options.keep_all_blocks);
    for (const std::uint32_t site : options.keep_blocks_of) {
      if (site < kept_.size()) {
        kept_[site] = true;
      }
    }
    with_ages_.resize(place_.size(), !options.with_ages);
    for (std::size_t i = 0; options.with_ages && i < with_ages_.size(); ++i) {
      with_ages_[i] = options.with_ages(static_cast<std::uint32_t>(i));
    }
    for (std::uint32_t i = 0; options.lists && i < place_.size(); ++i) {
      place_[i] = options.lists(i) ? kNoPlace : kAmongOthers;
    }
    const std::uint32_t listed = header.raw->period_count.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < std::min<std::size_t>(listed, wire::kMaxPeriods); ++i) {
      periods_.push_back(header.raw->periods[i].load(std::memory_order_relaxed));
    }
  }

  void add_record(std::uint64_t address, const LiveRecord& record) {
    const std::uint8_t period = wire::unpack_period(record.size_and_period);
    const std::uint64_t size_bytes = wire::unpack_size(record.size_and_period);
    if (period >= periods_.size()) {
      ++out_.losses.damaged_items;
      return;
    }
    const double weight = wire::sample_weight(size_bytes, periods_[period]);
    add({address, size_bytes, weight, record.site, record.epoch});
  }

  void add(const LiveBlock& block) {
    if (block.site >= place_.size()) {
      ++out_.losses.damaged_items;
      return;
    }
    const bool is_listed = place_[block.site] != kAmongOthers;
    std::uint32_t& place = is_listed ? place_[block.site] : place_of_others_;
    if (place == kNoPlace) {
      place = static_cast<std::uint32_t>(out_.sites.size());
      out_.sites.emplace_back().site = is_listed ? block.site : kOtherSites;
      out_.sites.back().bytes_by_age.resize(is_listed && with_ages_[block.site] ? out_.ages.size()
                                                                                : 0);
    }
    LiveSite& site = out_.sites[place];
    const auto size = static_cast<double>(block.size_bytes);
    ++site.recorded_blocks;
    site.blocks += block.weight;
    site.bytes += block.weight * size;
    site.bytes_variance += block.weight * (block.weight - 1.0) * size * size;
    if (!site.bytes_by_age.empty()) {
      site.bytes_by_age[scale_.bucket_of(block.epoch)] += block.weight * size;
    }
    if (kept_[block.site] && (!options_.keeps_address || options_.keeps_address(block.address))) {
      keep(block);
    }
  }

 private:
  void keep(const LiveBlock& block) {
    const bool is_small = block.size_bytes < options_.small_below_bytes;
    if (out_.blocks.size() >= options_.most_kept_blocks ||
        (is_small && small_kept_ >= options_.most_small_blocks)) {
      ++out_.blocks_not_kept;
      return;
    }
    small_kept_ += is_small ? 1U : 0U;
    out_.blocks.push_back(block);
  }

  const LiveScanOptions& options_;
  const AgeScale& scale_;
  LiveScan& out_;
  std::vector<std::uint32_t> place_;  // of each site in out_.sites
  std::uint32_t place_of_others_ = kNoPlace;
  std::vector<bool> kept_;
  std::vector<bool> with_ages_;
  std::size_t small_kept_ = 0;
  std::vector<std::uint64_t> periods_;
};

// Reads a table in chunks, each of them twice: `visit(first reading, second reading)`. Returns the
// number of items that could not be read.
template <typename Item, typename Visit>
std::uint64_t read_twice(int fd, const TableView& table, std::uint64_t end, std::size_t chunk,
                         Visit&& visit) {
  std::vector<Item> first(buffer_items(end, chunk));
  std::vector<Item> second(first.size());
  return for_each_chunk<Item>(fd, table, 0, end, first,
                              [&](std::uint64_t index, std::span<const Item> items) {
                                read_items(fd, table, index, items.size(), second.data());
                                visit(items, std::span<const Item>(second.data(), items.size()));
                              });
}

void scan_buckets(std::span<const LiveBucket> before, std::span<const LiveBucket> after,
                  SiteSums& sums, LiveScan& out) {
  for (std::size_t i = 0; i < before.size(); ++i) {
    for (std::size_t slot = 0; slot < wire::kSlotsPerBucket; ++slot) {
      const std::uint64_t address = address_of(before[i], slot);
      if (address == wire::kEmptySlot) {
        continue;
      }
      const LiveRecord& record = before[i].record[slot];
      if (address == wire::kBusySlot || address != address_of(after[i], slot) ||
          std::memcmp(&record, &after[i].record[slot], sizeof record) != 0) {
        ++out.losses.torn_slots;
        continue;
      }
      sums.add_record(address, record);
    }
  }
}

void scan_ranges(std::span<const MapRange> before, std::span<const MapRange> after, SiteSums& sums,
                 LiveScan& out) {
  for (std::size_t i = 0; i < before.size(); ++i) {
    const std::uint64_t begin = before[i].begin.load(std::memory_order_relaxed);
    const std::uint64_t bytes = before[i].bytes.load(std::memory_order_relaxed);
    if (bytes == 0) {
      continue;
    }
    if (begin != after[i].begin.load(std::memory_order_relaxed) ||
        bytes != after[i].bytes.load(std::memory_order_relaxed) ||
        before[i].site != after[i].site || before[i].epoch != after[i].epoch) {
      ++out.losses.torn_slots;
      continue;
    }
    if (begin + bytes < begin) {
      ++out.losses.damaged_items;
      continue;
    }
    sums.add({begin, bytes, 1.0, before[i].site, before[i].epoch});
  }
}

EpochRange epochs_of(int fd, const TraceHeader& header, std::uint64_t buckets,
                     std::uint64_t ranges) {
  EpochRange seen;
  std::vector<LiveBucket> some_buckets(buffer_items(buckets, kChunkBuckets));
  for_each_chunk<LiveBucket>(fd, header.table(Table::kLive), 0, buckets, some_buckets,
                             [&seen](std::uint64_t, std::span<const LiveBucket> items) {
                               for (const LiveBucket& bucket : items) {
                                 for (std::size_t i = 0; i < wire::kSlotsPerBucket; ++i) {
                                   if (address_of(bucket, i) > wire::kBusySlot) {
                                     seen.add(bucket.record[i].epoch);
                                   }
                                 }
                               }
                             });
  std::vector<MapRange> some_ranges(buffer_items(ranges, kChunkRanges));
  for_each_chunk<MapRange>(fd, header.table(Table::kRanges), 0, ranges, some_ranges,
                           [&seen](std::uint64_t, std::span<const MapRange> items) {
                             for (const MapRange& range : items) {
                               if (range.bytes.load(std::memory_order_relaxed) != 0) {
                                 seen.add(range.epoch);
                               }
                             }
                           });
  return seen;
}

}  // namespace

void EpochRange::add(std::uint32_t epoch) {
  std::optional<Ends>& ends = is_step(epoch) ? steps_ : seconds_;
  const std::uint32_t number = number_of(epoch);
  if (!ends) {
    ends = Ends{number, number};
  }
  ends->least = std::min(ends->least, number);
  ends->most = std::max(ends->most, number);
}

AgeScale::AgeScale(const EpochRange& seen, std::uint32_t now) {
  const bool by_step = is_step(now) || seen.steps().has_value();
  const bool by_second = !is_step(now) || seen.seconds().has_value();
  if (by_second) {
    const std::uint32_t most = is_step(now) ? seen.seconds()->most : number_of(now);
    seconds_ = add_part(0, most, by_step ? kSecondsBesideSteps : kMostAgeBuckets, false);
  }
  if (by_step) {
    const std::uint32_t most = is_step(now) ? number_of(now) : seen.steps()->most;
    const std::uint32_t least = seen.steps() ? std::min(seen.steps()->least, most) : most;
    steps_ = add_part(least, most, kMostAgeBuckets - buckets_.size(), true);
  }
}

AgeScale::Part AgeScale::add_part(std::uint32_t least, std::uint32_t most, std::size_t most_buckets,
                                  bool step) {
  const std::uint64_t range = std::uint64_t{most} - least + 1;
  const std::uint64_t width = (range + most_buckets - 1) / most_buckets;
  Part part{buckets_.size(), static_cast<std::size_t>((range + width - 1) / width), least,
            static_cast<std::uint32_t>(width)};
  for (std::uint64_t first = least; first <= most; first += width) {
    const std::uint64_t last = std::min<std::uint64_t>(first + width - 1, most);
    buckets_.push_back({static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last), step});
  }
  return part;
}

std::size_t AgeScale::bucket_of(std::uint32_t epoch) const {
  const Part& own = is_step(epoch) ? steps_ : seconds_;
  if (own.buckets == 0) {  // a block that came after the range was taken
    return buckets_.size() - 1;
  }
  const std::uint32_t number = std::max(number_of(epoch), own.least);
  const std::size_t bucket = (number - own.least) / own.width;
  return own.first_bucket + std::min(bucket, own.buckets - 1);
}

LiveScan scan_live_blocks(int fd, const TraceHeader& header, const LiveScanOptions& options) {
  const TableView& live = header.table(Table::kLive);
  const TableView& maps = header.table(Table::kRanges);
  const Bound buckets = bounded(live.capacity(), readable_end(live), kMostBuckets);
  const Bound ranges = bounded(header.used(Table::kRanges), readable_end(maps), kMostRanges);
  const AgeScale scale(epochs_of(fd, header, buckets.end, ranges.end),
                       header.raw->control.epoch.load(std::memory_order_relaxed));
  LiveScan out;
  out.ages = scale.buckets();
  out.losses.unread_items = buckets.beyond * wire::kSlotsPerBucket + ranges.beyond;
  SiteSums sums(header, scale, options, out);
  out.losses.unread_items +=
      wire::kSlotsPerBucket *
      read_twice<LiveBucket>(fd, live, buckets.end, kChunkBuckets, [&](auto before, auto after) {
        scan_buckets(before, after, sums, out);
      });
  out.losses.unread_items +=
      read_twice<MapRange>(fd, maps, ranges.end, kChunkRanges,
                           [&](auto before, auto after) { scan_ranges(before, after, sums, out); });
  std::sort(out.sites.begin(), out.sites.end(),
            [](const LiveSite& a, const LiveSite& b) { return a.site < b.site; });
  return out;
}

}  // namespace tidemark::reader
