/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer_harness/native/image_decoder.h"

#include <stdlib.h>
#include <string.h>

/* Each call has a frame of its own in every stack, at any optimisation: it is not inlined, and
   there is work left when it comes back. */
#define SEPARATE_CALL static __attribute__((noinline, noclone))

SEPARATE_CALL unsigned char* scratch_buffer(size_t bytes) {
  unsigned char* const buffer = (unsigned char*)malloc(bytes);
  if (buffer != NULL) {
    memset(buffer, 0x5A, bytes);
  }
  return buffer;
}
enum { kLeakingLine = __LINE__ - 6 }; /* of the malloc */

SEPARATE_CALL unsigned long decode_rows(size_t bytes) {
  const unsigned char* rows = scratch_buffer(bytes);
  return rows != NULL && bytes > 0 ? rows[0] + (unsigned long)rows[bytes - 1] : 0;
}

SEPARATE_CALL unsigned long decode_planes(size_t bytes) { return 3 * decode_rows(bytes); }

unsigned long harness_decode_image(size_t bytes) { return decode_planes(bytes) + 1; }

int harness_decoder_leaking_line(void) { return kLeakingLine; }
