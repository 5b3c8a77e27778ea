// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/recording_sink.h"

namespace tidemark::recording {

// What reading a recording yielded, beside the records themselves.
struct ReadSummary {
  std::uint64_t ticks = 0;
  std::uint64_t samples = 0;  // of processes
  std::uint64_t lines = 0;    // of text formats
  std::uint64_t bad_lines = 0;
  std::uint64_t first_bad_line = 0;  // counted from 1; 0: none
  std::string first_bad_reason;
  std::vector<std::string> notes;  // what a reader of the result should know, as sentences
};

// A finished run, or what there is of one that is still being recorded. Not thread-safe.
class RecordingReader {
 public:
  virtual ~RecordingReader() = default;
  virtual const RunInfo& info() const = 0;
  // Streams the run into `sink` in the order of time: begin, ticks, ends of processes, end. To be
  // called once. On an error (of the file or of the sink) what came before it has been delivered
  // and end() is not called.
  virtual Result<ReadSummary> read(RecordingSink& sink) = 0;
};

}  // namespace tidemark::recording
