// SPDX-License-Identifier: Apache-2.0
// Calls malloc once, so that it is bound, and free only later.
#include <stdlib.h>

static void* volatile block;

void plugin_allocate(void) { block = malloc(64); }

void plugin_free(void) { free(block); }
