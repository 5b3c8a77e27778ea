// SPDX-License-Identifier: Apache-2.0
// What the victims of the tracer share: they say at their end which function holds what.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

namespace tidemark::victim {

// What one function allocated and nobody freed, counted per kind of memory.
struct Held {
  const char* function;
  std::uint64_t live_bytes;
  std::uint64_t live_blocks;
  const char* kind = "heap";
};

// The truth as one line of JSON, written at once and without a buffer of the heap: processes of a
// tree may write side by side. `uniform`: the blocks of a function are all of one size.
inline void print_held(const char* victim, std::initializer_list<Held> all, bool uniform = true) {
  char line[2048];
  int size = std::snprintf(line, sizeof(line), R"({"victim":"%s","pid":%d,"uniform":%s,"held":[)",
                           victim, ::getpid(), uniform ? "true" : "false");
  const char* comma = "";
  for (const Held& held : all) {
    size += std::snprintf(line + size, sizeof(line) - static_cast<std::size_t>(size),
                          R"(%s{"function":"%s","kind":"%s","live_bytes":%llu,"live_blocks":%llu})",
                          comma, held.function, held.kind,
                          static_cast<unsigned long long>(held.live_bytes),
                          static_cast<unsigned long long>(held.live_blocks));
    comma = ",";
  }
  size += std::snprintf(line + size, sizeof(line) - static_cast<std::size_t>(size), "]}\n");
  if (::write(STDOUT_FILENO, line, static_cast<std::size_t>(size)) != size) {
    std::_Exit(3);
  }
}

// Keeps the compiler from leaving out an allocation that nobody looks at.
inline void* volatile g_last_block = nullptr;
template <typename T>
T* seen(T* block) {
  g_last_block = block;
  return block;
}

}  // namespace tidemark::victim

// A function whose name the test looks for: it keeps a frame of its own.
#define VICTIM_SITE extern "C" [[gnu::noinline, gnu::used]]
