/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the layout of the marker file as JSON, for writers that cannot include the header. */
#define TIDEMARK_LAYOUT_ONLY
#include "api/tidemark.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#define HEADER(field) \
  printf("\"header.%s\": %zu,\n", #field, offsetof(struct tidemark_ring_header, field))
#define RECORD(field) \
  printf("\"record.%s\": %zu,\n", #field, offsetof(struct tidemark_ring_record, field))

int main(void) {
  printf("{\n");
  HEADER(magic);
  HEADER(version);
  HEADER(record_bytes);
  HEADER(capacity);
  HEADER(pid);
  HEADER(start_ticks);
  HEADER(users);
  HEADER(next);
  HEADER(step);
  HEADER(step_time_ns);
  HEADER(epoch);
  HEADER(epoch_time_ns);
  RECORD(sequence);
  RECORD(time_ns);
  RECORD(value);
  RECORD(kind);
  RECORD(name_bytes);
  RECORD(name);
  printf("\"header_bytes\": %zu,\n", sizeof(struct tidemark_ring_header));
  printf("\"record_bytes\": %zu,\n", sizeof(struct tidemark_ring_record));
  printf("\"file_bytes\": %zu,\n", sizeof(struct tidemark_ring));
  printf("\"magic\": %" PRIu64 ",\n", TIDEMARK_RING_MAGIC);
  printf("\"version\": %u,\n", TIDEMARK_RING_VERSION);
  printf("\"capacity\": %u,\n", TIDEMARK_RING_CAPACITY);
  printf("\"longest_name\": %u,\n", TIDEMARK_RING_NAME_BYTES);
  printf("\"kinds\": [%d, %d, %d, %d, %d]\n", TIDEMARK_KIND_STEP, TIDEMARK_KIND_EPOCH,
         TIDEMARK_KIND_PHASE_BEGIN, TIDEMARK_KIND_PHASE_END, TIDEMARK_KIND_GAUGE);
  printf("}\n");
  return 0;
}
