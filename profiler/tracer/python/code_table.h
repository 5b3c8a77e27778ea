// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "profiler/tracer/hash_index.h"
#include "profiler/tracer/python/interpreter.h"
#include "profiler/tracer/trace_store.h"

namespace tidemark::tracer {

// Writes the code objects that frames were seen in to the trace file: file, name, line table. Only
// for frames of the calling thread, which keep their code objects alive. Lock-free.
class PythonCodeTable {
 public:
  void bind(TraceStore& store, const PythonInterpreter& python) noexcept {
    store_ = &store;
    python_ = &python;
  }
  // The number of the code object of a frame; wire::kNoCode: there is no room for it.
  std::uint32_t number_of(const PythonFrame& frame) noexcept;
  void clear() noexcept;  // in a forked child, which has tables of its own
  std::uint64_t private_bytes() const noexcept { return codes_.bytes() + files_.bytes(); }

 private:
  struct Written {
    std::uint32_t offset = 0;
    std::uint32_t bytes = 0;
  };
  std::uint32_t add(const PythonFrame& frame) noexcept;
  bool add_text(std::uint64_t text, std::uint64_t most_bytes, Written& written) noexcept;
  bool add_file(std::uint64_t text, Written& written) noexcept;
  bool add_lines(std::uint64_t bytes, Written& written) noexcept;

  TraceStore* store_ = nullptr;
  const PythonInterpreter* python_ = nullptr;
  HashIndex codes_;  // by identity
  HashIndex files_;  // offsets of their names, by a hash of these
};

}  // namespace tidemark::tracer
