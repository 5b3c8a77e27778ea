// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/fd.h"
#include "common/records.h"
#include "common/result.h"
#include "monitor/markers/step_pattern.h"
#include "monitor/markers/step_recognizer.h"

namespace tidemark::monitor {

// How steps are found in a line: as --step-regex says, or recognised.
using StepFinder = std::variant<StepPattern, StepRecognizer>;

// What --step-regex did not see.
struct StepLosses {
  std::uint64_t steps = 0;  // found, and dropped because nobody took them in time
  std::uint64_t lines = 0;  // given up: the pattern would have taken too long on them

  StepLosses& operator+=(const StepLosses& other) {
    steps += other.steps;
    lines += other.lines;
    return *this;
  }
};

// Where a search of a stream stops: behind the line that reaches one of these.
struct StepLimits {
  std::size_t steps = static_cast<std::size_t>(-1);
  std::uint64_t work = static_cast<std::uint64_t>(-1);  // of StepSearch
};

// Finds steps in a stream of output. Lines end with \n or \r (progress bars rewrite theirs); only
// the first kMaxLineBytes of a line are read. A step that is printed again and again counts
// once. Not thread-safe.
class StepScanner {
 public:
  static constexpr std::size_t kMaxLineBytes = 4096;

  explicit StepScanner(StepFinder finder) : finder_(std::move(finder)) {}

  // Appends a marker (pid 0, time `t_s`) for each line of `bytes` that names another step than the
  // one before. Returns how much it has taken.
  std::size_t feed(std::string_view bytes, double t_s, std::vector<MarkerRecord>& out,
                   const StepLimits& limits = {});
  // The stream has ended: its last line may have no end.
  void end(double t_s, std::vector<MarkerRecord>& out);
  // Forgets a line of which the rest will never come.
  void drop_partial_line();
  // Lines that were given up since the last call.
  StepLosses take_lost() { return {.lines = std::exchange(lost_lines_, 0)}; }
  // Of all searches so far.
  std::uint64_t work() const { return work_; }

 private:
  void add_to_line(std::string_view part);
  StepSearch search_line();
  void finish_line(double t_s, std::vector<MarkerRecord>& out);

  StepFinder finder_;
  std::string line_;
  std::optional<std::int64_t> last_step_;
  std::uint64_t lost_lines_ = 0;
  std::uint64_t work_ = 0;
};

// `--log-file`: follows a log that the job writes, as `tail -F` does: it may appear later, be
// truncated, or be renamed and made anew. Starts at the end of a log that exists, at the beginning
// of one that appears. Steps are stamped with the time of the poll. Not thread-safe.
class LogFollower {
 public:
  // An error when the path exists and is not a file that we can read.
  static Result<LogFollower> open(std::string path, StepFinder finder);

  // Appends the steps in what was written since the last call. Of one log it takes no more at once
  // than the limits below; the next call goes on there.
  void poll(double t_s, std::vector<MarkerRecord>& out);
  StepLosses take_lost() { return scanner_.take_lost(); }

  static constexpr std::size_t kMaxBytesPerPoll = 4U << 20U;
  static constexpr std::size_t kMaxStepsPerPoll = 16'384;
  static constexpr std::uint64_t kMaxWorkPerPoll = 4'000'000;  // about 100 ms

 private:
  LogFollower(std::string path, StepFinder finder);

  bool reopen();
  // False when it stopped at a limit, before the end of the log.
  bool read_more(double t_s, std::vector<MarkerRecord>& out);

  std::string path_;
  StepScanner scanner_;
  Fd file_;  // none until the log appears
  dev_t device_ = 0;
  ino_t inode_ = 0;
  off_t offset_ = 0;
  std::vector<char> buffer_;
};

}  // namespace tidemark::monitor
