// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/fd.h"
#include "common/result.h"
#include "live/watch_options.h"

namespace tidemark::live {

// The last runs that were watched without -o, in a folder that only their user can read: what was
// on a screen can be judged again (`tidemark track --last`). Bounded in number and size.
class KeptRuns {
 public:
  static constexpr std::size_t kMostRuns = 5;
  static constexpr std::uint64_t kMostBytes = 200'000'000;  // of all of them, so also of one

  // Of this user: $XDG_CACHE_HOME, ~/.cache, or that of the home that the user database has.
  static Result<std::string> cache_folder();
  // tidemark/runs below that folder; both are made (0700) if need be. A folder that is a link or
  // belongs to somebody else is an error.
  static Result<KeptRuns> open(const std::string& cache_folder);

  // For a run that begins now; nothing is made there.
  std::string new_path() const;
  // The one that was written to last. One that is still being written comes after all others: who
  // has just closed a screen means that one.
  Result<std::string> last() const;
  // Removes the oldest until there are not too many, nor too large ones together. `own`, which need
  // not exist, and those that are being written stay.
  void trim(const std::string& own) const;

  // Of a run file with its log.
  static std::uint64_t bytes_of(const std::string& path);

 private:
  struct Run {
    std::string path;
    std::int64_t written_ns = 0;
    std::uint64_t bytes = 0;
  };
  KeptRuns(std::string folder, Fd descriptor)
      : folder_(std::move(folder)), descriptor_(std::move(descriptor)) {}
  // The newest first.
  std::vector<Run> runs() const;
  void remove(const std::string& path) const;

  std::string folder_;
  Fd descriptor_;
};

// Has the run recorded into a kept run file, if it is watched by a person (stdout is a terminal)
// and not recorded anyway. Where that cannot be, the reason is printed and the run is not kept.
// trim() what it returns once the run is over.
std::optional<KeptRuns> keep_run(WatchOptions& watch);

}  // namespace tidemark::live
