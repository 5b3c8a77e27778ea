// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/check.h"
#include "common/fd.h"
#include "common/io.h"
#include "common/recording_sink.h"
#include "recording/import/text_input.h"

namespace tidemark::fuzz {

// Aborts when a reader breaks the contract of its sink.
class CheckingSink final : public RecordingSink {
 public:
  Status begin(const RunInfo&) override {
    TIDEMARK_CHECK(!has_begun_, "begin() twice");
    has_begun_ = true;
    return ok();
  }
  Status add(const Tick& tick) override {
    TIDEMARK_CHECK(has_begun_ && !has_ended_, "a tick outside of the run");
    TIDEMARK_CHECK(tick.t_s >= last_t_s_, "time goes back, or is not a number");
    last_t_s_ = tick.t_s;
    return ok();
  }
  Status process_ended(const ProcessRecord& process) override {
    TIDEMARK_CHECK(process.exited_s.has_value(), "an end without its time");
    return ok();
  }
  Status end(double) override {
    TIDEMARK_CHECK(has_begun_ && !has_ended_, "end() out of place");
    has_ended_ = true;
    return ok();
  }

 private:
  bool has_begun_ = false;
  bool has_ended_ = false;
  double last_t_s_ = -1e300;
};

inline recording::TextInput input_of(const std::uint8_t* data, std::size_t size) {
  Fd file(::memfd_create("fuzz", MFD_CLOEXEC));
  TIDEMARK_CHECK(file && write_all(file.get(), {reinterpret_cast<const char*>(data), size}),
                 "no file in memory");
  ::lseek(file.get(), 0, SEEK_SET);
  return {std::move(file), "input"};
}

// Reads all of a recording that could be opened; errors are fine, crashes are not.
template <typename OpenedReader>
void read_all(OpenedReader reader) {
  if (reader) {
    CheckingSink sink;
    static_cast<void>((*reader)->read(sink));
  }
}

}  // namespace tidemark::fuzz
