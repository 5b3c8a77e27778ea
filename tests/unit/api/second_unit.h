/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TIDEMARK_TESTS_SECOND_UNIT_H_
#define TIDEMARK_TESTS_SECOND_UNIT_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
void mark_from_second_unit(int64_t step);
#ifdef __cplusplus
}
#endif

#endif
