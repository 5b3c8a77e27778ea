/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object that marks: loaded and unloaded by the tests. */
#include "api/tidemark.h"

__attribute__((visibility("default"))) void mark_from_module(int64_t step);
void mark_from_module(int64_t step) { tidemark_step(step); }
