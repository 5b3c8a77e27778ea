// SPDX-License-Identifier: Apache-2.0
// A ring file is what the target wrote, or what somebody made of it. The input is laid over a
// valid ring of a small capacity in two halves, with a read after each: nothing in it may make the
// reader crash, read out of bounds or deliver more than the ring holds.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/check.h"
#include "monitor/markers/marker_ring.h"

#define TIDEMARK_LAYOUT_ONLY
#include "api/tidemark.h"

namespace {

using tidemark::Fd;
using tidemark::monitor::MarkerRing;
using tidemark::monitor::RingMarker;

constexpr std::uint32_t kCapacity = 64;
constexpr std::size_t kFileBytes =
    sizeof(tidemark_ring_header) + kCapacity * sizeof(tidemark_ring_record);

void put(int fd, const void* data, std::size_t size, std::size_t offset) {
  TIDEMARK_CHECK(::pwrite(fd, data, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size),
                 "cannot write the ring");
}

void read_all(MarkerRing& ring, MarkerRing::Pass pass) {
  std::vector<RingMarker> markers;
  ring.read(pass, markers);
  TIDEMARK_CHECK(markers.size() <= TIDEMARK_RING_CAPACITY, "more records than a ring can hold");
  for (const RingMarker& marker : markers) {
    TIDEMARK_CHECK(marker.name.size() <= TIDEMARK_RING_NAME_BYTES, "a name out of bounds");
  }
  ring.latest(tidemark::MarkerKind::kStep);
  ring.latest(tidemark::MarkerKind::kEpoch);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int fd = ::memfd_create("ring", MFD_CLOEXEC);
  TIDEMARK_CHECK(::ftruncate(fd, 0) == 0 && ::ftruncate(fd, kFileBytes) == 0, "cannot size");
  tidemark_ring_header header{};
  header.magic = TIDEMARK_RING_MAGIC;
  header.version = TIDEMARK_RING_VERSION;
  header.record_bytes = sizeof(tidemark_ring_record);
  header.capacity = kCapacity;
  header.pid = 1;
  header.start_ticks = 1;
  put(fd, &header, sizeof header, 0);
  // The first byte chooses where the input begins: in the header, or at `next` behind it.
  const std::size_t offset =
      size > 0 && data[0] % 4 != 0 ? offsetof(tidemark_ring_header, next) : 0;
  const std::size_t half = size / 2;
  put(fd, data, half, offset);
  auto ring = MarkerRing::open(Fd(::dup(fd)), 1, 1);
  if (!ring) {
    return 0;
  }
  read_all(*ring, MarkerRing::Pass::kMore);
  put(fd, data + half, size - half, offset);
  if (size % 5 == 0) {
    TIDEMARK_CHECK(::ftruncate(fd, static_cast<off_t>(size)) == 0, "cannot cut");
  }
  read_all(*ring, MarkerRing::Pass::kMore);
  read_all(*ring, MarkerRing::Pass::kLast);
  ring->take_lost();
  return 0;
}
