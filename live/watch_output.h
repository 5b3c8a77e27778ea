// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.h"
#include "live/line_writer.h"
#include "monitor/procfs/shm_watch.h"

namespace tidemark::live {

// Where a command that watches speaks: the lines of its view, and our own words on stderr. Only
// flush() ever waits for whoever reads them.
class WatchOutput {
 public:
  // `lines_fd`: where the lines go; nullopt: to stderr like the messages.
  static Result<WatchOutput> open(int stderr_fd, std::optional<int> lines_fd);

  LineWriter& lines() { return output_ ? *output_ : messages_; }
  // True as long as somebody reads the lines. When they cannot be written this is told, once;
  // a reader that went away is nothing to tell.
  bool check_lines();
  // Readable when check_lines() has news; -1 after it had.
  int lines_ended_fd();
  // Lines were lost to an error, not to a reader that went away.
  bool is_incomplete() const { return is_incomplete_; }

  // Lines that nobody read in time, since the last call; and the sum of it in a note.
  std::uint64_t take_dropped();
  void tell_dropped();

  void say(std::string text);
  // Somebody who gets to hear messages first; true: that was enough.
  void set_listener(std::function<bool(const std::string& text)> listener) {
    listener_ = std::move(listener);
  }
  void note(std::string_view text);
  void error(std::string_view what, std::string_view hint = {});

  // The last thing to do: everything is read, or given up. `wait` sleeps until a descriptor is
  // readable, and says false when it was told to stop.
  void flush(const std::function<bool(int fd)>& wait);

 private:
  explicit WatchOutput(LineWriter messages) : messages_(std::move(messages)) {}

  LineWriter messages_;               // to stderr
  std::optional<LineWriter> output_;  // to stdout, when the lines go there
  std::function<bool(const std::string& text)> listener_;
  std::uint64_t dropped_ = 0;
  bool lines_failed_ = false;
  bool is_incomplete_ = false;
};

// What is said at the end about segments of /dev/shm that no process holds, which outlive the job,
// and about those of which this is not known. `used_bytes`: of all of /dev/shm.
std::vector<std::string> segment_notes(const std::optional<monitor::ShmReport>& report,
                                       std::optional<std::uint64_t> used_bytes);

}  // namespace tidemark::live
