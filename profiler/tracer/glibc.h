// SPDX-License-Identifier: Apache-2.0
// What only glibc has. Weak, so that a program with another libc (musl) also starts when the tracer
// is preloaded into it; there is_glibc() is false, and the tracer stays off.
#pragma once

#include <dlfcn.h>

#include <cstddef>

extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): names of libc and of the
// compiler
[[gnu::weak]] void* __libc_memalign(std::size_t alignment, std::size_t bytes);
[[gnu::weak]] int __register_atfork(void (*prepare)(), void (*parent)(), void (*child)(),
                                    void* library);
[[gnu::weak]] decltype(dladdr1) dladdr1;
[[gnu::visibility("hidden")]] extern void* __dso_handle;  // stands for this library
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
}

namespace tidemark::tracer {

inline bool is_glibc() noexcept {
  return __register_atfork != nullptr && __libc_memalign != nullptr && dladdr1 != nullptr;
}

}  // namespace tidemark::tracer
