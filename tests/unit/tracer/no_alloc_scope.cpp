// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/tracer/no_alloc_scope.h"

#include <cstdlib>

namespace {

constinit thread_local bool t_counts = false;
constinit thread_local std::size_t t_calls = 0;

[[maybe_unused]] void called() { t_calls += t_counts ? 1 : 0; }

}  // namespace

#ifdef TIDEMARK_COUNTS_MALLOC
extern "C" {
void* __libc_malloc(std::size_t);
void __libc_free(void*);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);

void* malloc(std::size_t bytes) {
  called();
  return __libc_malloc(bytes);
}
void free(void* block) {
  called();
  __libc_free(block);
}
void* calloc(std::size_t count, std::size_t bytes) {
  called();
  return __libc_calloc(count, bytes);
}
void* realloc(void* block, std::size_t bytes) {
  called();
  return __libc_realloc(block, bytes);
}
}
#endif

namespace tidemark::tests {

NoAllocScope::NoAllocScope() {
  t_calls = 0;
  t_counts = true;
}
NoAllocScope::~NoAllocScope() { t_counts = false; }

bool NoAllocScope::works() {
  const NoAllocScope scope;
  std::free(std::malloc(1));  // NOLINT: the compiler may leave it out, then it does not work
  return scope.calls() == 2;
}

std::size_t NoAllocScope::calls() const { return t_calls; }

}  // namespace tidemark::tests
