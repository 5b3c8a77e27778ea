// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profiler/heap/memory_image.h"
#include "profiler/heap/python_layout.h"

namespace tidemark::tests {

// The memory of a small Python that a test makes up: a runtime with an interpreter and a thread,
// types, and the module __main__ with an object of each kind. Everything lies in one mapping.
class MadeUpPython {
 public:
  static constexpr std::uint64_t kBegin = 0x100000;
  static constexpr std::size_t kBytes = 0xc000;

  explicit MadeUpPython(unsigned minor);

  const heap::PythonLayout& layout() const { return layout_; }
  const std::string& bytes() const { return bytes_; }
  std::string& bytes() { return bytes_; }
  std::uint64_t runtime() const { return kBegin; }
  // Of what it has: a type ("list"), a variable of __main__ ("cache").
  std::uint64_t type(std::string_view name) const;
  std::uint64_t variable(std::string_view name) const;

  // Its memory; the text must outlive it.
  static heap::MemoryImage image(const std::string& bytes);
  static std::vector<heap::Mapping> mappings();

  void put(std::uint64_t address, std::uint64_t word);
  std::uint64_t make_text(std::string_view text);
  std::uint64_t make_list(const std::vector<std::uint64_t>& items);
  std::uint64_t make_tuple(const std::vector<std::uint64_t>& items);
  std::uint64_t make_dict(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& items);

 private:
  std::uint64_t take(std::size_t bytes);
  std::uint64_t make(std::string_view type, std::size_t bytes = 128);
  void make_types();
  void make_type(std::string_view name, std::uint64_t size, std::uint64_t item_size,
                 std::uint64_t flags);
  void make_interpreter();
  void make_variables();
  std::uint64_t make_code();
  std::uint64_t make_function();
  std::uint64_t make_deque();
  std::uint64_t make_set();
  void make_thread();

  heap::PythonLayout layout_;
  std::string bytes_ = std::string(kBytes, '\0');
  std::uint64_t next_ = kBegin;
  std::uint64_t interpreter_ = 0;
  std::vector<std::pair<std::string, std::uint64_t>> types_;
  std::vector<std::pair<std::string, std::uint64_t>> variables_;
};

}  // namespace tidemark::tests
