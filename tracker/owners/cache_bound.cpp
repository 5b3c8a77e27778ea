// SPDX-License-Identifier: Apache-2.0
#include "tracker/owners/cache_bound.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "common/text.h"

namespace tidemark::tracker {
namespace {

constexpr std::uint64_t kFewestSamples = 16;

bool has_evidence(const RankedOwner& owner, OwnerEvidenceKind kind) {
  const auto& evidence = owner.first().evidence;
  return std::any_of(evidence.begin(), evidence.end(),
                     [&](const OwnerEvidence& each) { return each.kind == kind; });
}

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }

// By what people call it: a word in the last two names of its path.
bool is_called_data(const OwnerRecord& owner) {
  constexpr std::array<std::string_view, 9> kWords = {
      "data", "dataset", "trainset", "samples", "images", "files", "examples", "corpus", "records"};
  const std::string path = to_lower(owner.path);
  int names = 0;
  for (std::size_t end = path.size(); end > 0 && names < 2;) {
    std::size_t begin = end;
    while (begin > 0 && is_letter(path[begin - 1])) {
      --begin;
    }
    const std::string_view word = std::string_view(path).substr(begin, end - begin);
    if (std::find(kWords.begin(), kWords.end(), word) != kWords.end()) {
      return true;
    }
    names += begin > 0 && path[begin - 1] == '.' ? 1 : 0;
    end = begin > 0 ? begin - 1 : 0;
  }
  return false;
}

// The first of the ranking is the largest.
const RankedOwner* data_set_of(const RankedOwner& owner, const OwnerRanking& ranking) {
  for (const RankedOwner& other : ranking.owners) {
    if (!other.grows() && other.verdict == Verdict::kStable && !other.record().is_library &&
        other.first().process == owner.first().process &&
        other.entries.value_or(0) >= kFewestSamples && is_called_data(other.record())) {
      return &other;
    }
  }
  return nullptr;
}

// Until it has so many entries more, at its rate.
std::optional<double> time_for(const RankedOwner& owner, double entries) {
  return owner.entries_per_s && *owner.entries_per_s > 0.0
             ? std::optional(entries / *owner.entries_per_s)
             : std::nullopt;
}

}  // namespace

std::optional<CacheBound> cache_bound(const RankedOwner& owner, const OwnerRanking& ranking,
                                      const RunOwners& run) {
  if (!owner.grows() || !owner.entries || !has_evidence(owner, OwnerEvidenceKind::kKeyed)) {
    return std::nullopt;
  }
  CacheBound bound;
  bound.data_set = data_set_of(owner, ranking);
  if (bound.data_set != nullptr) {
    bound.samples = *bound.data_set->entries;
    bound.is_exceeded = *owner.entries > bound.samples;
    if (!bound.is_exceeded) {
      bound.in_s = time_for(owner, static_cast<double>(bound.samples - *owner.entries));
    }
    return bound;
  }
  const auto within = std::find_if(
      owner.first().evidence.begin(), owner.first().evidence.end(),
      [](const OwnerEvidence& each) { return each.kind == OwnerEvidenceKind::kWithinFirstEpoch; });
  if (within == owner.first().evidence.end() || !run.epoch_steps || within->value >= 1.0) {
    return std::nullopt;
  }
  bound.samples = static_cast<std::uint64_t>(std::llround(*run.epoch_steps));
  if (run.epoch_seconds) {
    bound.in_s = (1.0 - within->value) * *run.epoch_seconds;
  }
  return bound;
}

}  // namespace tidemark::tracker
