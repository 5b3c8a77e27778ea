// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "profiler/reader/trace_image.h"
#include "profiler/reader/trace_values.h"

namespace tidemark::reader {

// The code objects of Python in a trace file. They are read when a frame asks for them; those that
// were read last are kept. Not thread-safe.
class PythonCodes {
 public:
  // Takes note of the code objects that came since the last call.
  void extend(const TraceHeader& header);
  // Names a frame of Python: function, file and line, as far as they are known.
  void name(int fd, StackFrame& frame);

 private:
  struct Code {
    std::string function;
    std::string file;
    std::string lines;
    std::uint32_t first_line = 0;
    std::uint16_t minor = 0;
  };
  const Code* read(int fd, std::uint32_t number);
  bool read_text(int fd, std::uint32_t offset, std::uint32_t bytes, std::string& text) const;

  TableView table_;
  TableView strings_;
  std::uint64_t size_ = 0;
  std::unordered_map<std::uint32_t, Code> codes_;
};

}  // namespace tidemark::reader
