// SPDX-License-Identifier: Apache-2.0
// An extension in C++ that throws and catches, for a program in another language.
#include <cstdlib>
#include <new>
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

// How many of the forms of operator new say that there is no such block as they should.
extern "C" [[gnu::visibility("default")]] int ask_for_too_much() {
  volatile std::size_t bytes = std::size_t{1} << 46U;
  const auto throws = [&](auto form) {
    try {
      form();
    } catch (const std::bad_alloc&) {
      return 1;
    }
    return 0;
  };
  constexpr std::align_val_t kAlign{64};
  return throws([&] { ::operator delete(::operator new(bytes)); }) +
         throws([&] { ::operator delete[](::operator new[](bytes)); }) +
         throws([&] { ::operator delete(::operator new(bytes, kAlign), kAlign); }) +
         throws([&] { ::operator delete[](::operator new[](bytes, kAlign), kAlign); }) +
         (::operator new(bytes, std::nothrow) == nullptr ? 1 : 0);
}
