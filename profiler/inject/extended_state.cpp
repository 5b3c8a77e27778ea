// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/extended_state.h"

#include <cpuid.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace tidemark::inject {
namespace {

// In the part that software may use (struct _fpx_sw_bytes, uapi/asm/sigcontext.h).
struct SoftwareBytes {
  std::uint32_t magic;
  std::uint32_t extended_bytes;  // with the second magic number
  std::uint64_t features;
  std::uint32_t state_bytes;
  std::uint32_t padding[7];
};
static_assert(sizeof(SoftwareBytes) == 48);
constexpr std::size_t kSoftwareBytesAt = 464;
constexpr std::uint32_t kFirstMagic = 0x46505853;
constexpr std::uint32_t kSecondMagic = 0x46505845;
// The header behind the x87 and SSE registers begins with the parts that are in use, as bits.
constexpr std::size_t kHeaderAt = 512;
constexpr std::size_t kLeastBytes = kHeaderAt + 64;

}  // namespace

StateParts state_parts() {
  constexpr unsigned kLeaf = 0xd;
  constexpr unsigned kFirst = 2;  // x87 and SSE have their fixed place
  StateParts parts = {};
  for (unsigned i = kFirst; i < parts.size(); ++i) {
    unsigned flags = 0;
    unsigned unused = 0;
    __get_cpuid_count(kLeaf, i, &parts[i].bytes, &parts[i].offset, &flags, &unused);
  }
  return parts;
}

std::vector<char> for_signal_frame(std::vector<char> state, const StateParts& parts) {
  if (state.size() < kLeastBytes) {
    return {};
  }
  std::uint64_t in_use = 0;
  std::memcpy(&in_use, state.data() + kHeaderAt, sizeof(in_use));
  std::size_t bytes = kLeastBytes;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if ((in_use >> i & 1U) != 0) {
      bytes = std::max<std::size_t>(bytes, std::size_t{parts[i].offset} + parts[i].bytes);
    }
  }
  state.resize(std::min(bytes, state.size()));
  SoftwareBytes words = {};
  std::memcpy(&words.features, state.data() + kSoftwareBytesAt, sizeof(words.features));
  words.magic = kFirstMagic;
  words.state_bytes = static_cast<std::uint32_t>(state.size());
  words.extended_bytes = words.state_bytes + sizeof(kSecondMagic);
  std::memcpy(state.data() + kSoftwareBytesAt, &words, sizeof(words));
  state.resize(state.size() + sizeof(kSecondMagic));
  std::memcpy(state.data() + words.state_bytes, &kSecondMagic, sizeof(kSecondMagic));
  return state;
}

}  // namespace tidemark::inject
