/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A third-party library with a bug, as far as the trainer is concerned: decodes an image of that
   many bytes and loses the scratch buffer, three calls further down. A checksum. */
unsigned long harness_decode_image(size_t bytes);

/* The line of image_decoder.c that allocates what is lost. */
int harness_decoder_leaking_line(void);

#ifdef __cplusplus
}
#endif
