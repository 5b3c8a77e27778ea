// SPDX-License-Identifier: Apache-2.0
// A program that is not position independent and takes the address of malloc: it has a stub in its
// name, which every library takes for malloc.
#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

namespace {

void* (*volatile g_malloc)(std::size_t) = nullptr;

}  // namespace

VICTIM_SITE void by_pointer() { seen(g_malloc(100)); }
VICTIM_SITE void by_array() { seen(::reallocarray(nullptr, 10, 10)); }

int main() {
  g_malloc = std::malloc;  // in code: only that needs the stub
  by_pointer();
  by_array();
  print_held("fixed_place", {{"by_pointer", 100, 1}, {"by_array", 100, 1}});
}
