// SPDX-License-Identifier: Apache-2.0
// An extension in C++ that throws and catches, for a program in another language.
#include <cstdlib>
#include <stdexcept>

extern "C" [[gnu::visibility("default")]] int throw_and_catch(int count) {
  int caught = 0;
  for (int i = 0; i < count; ++i) {
    try {
      throw std::runtime_error("one");
    } catch (const std::exception&) {
      ++caught;
    }
  }
  return caught;
}
