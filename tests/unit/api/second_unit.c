/* SPDX-License-Identifier: Apache-2.0 */
/* The header as a strict C99 program sees it, and as the second translation unit of a process. */
#include "api/tidemark.h" /* first: see the #error in it */

#include "tests/unit/api/second_unit.h"

void mark_from_second_unit(int64_t step) { tidemark_step(step); }
