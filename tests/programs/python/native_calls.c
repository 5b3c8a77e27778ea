// SPDX-License-Identifier: Apache-2.0
// What a C extension does: called from Python by ctypes.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

void* kept_blocks[1 << 16];
size_t kept_count;

// Allocates a block that is never freed, and writes to it.
void keep_block(size_t bytes) {
  void* block = malloc(bytes);
  if (block != NULL && kept_count < sizeof(kept_blocks) / sizeof(*kept_blocks)) {
    kept_blocks[kept_count++] = memset(block, 1, bytes);
  }
}

static void* keep_one(void* bytes) {
  keep_block((size_t)bytes);
  return NULL;
}

// The same, in a thread that knows nothing of Python.
void keep_block_in_thread(size_t bytes) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, keep_one, (void*)bytes) == 0) {
    pthread_join(thread, NULL);
  }
}

void call_back(void (*function)(void)) {
  function();
  __asm__ volatile("");  // no tail call
}

// As a thread of a library that computes: until the process ends.
void allocate_for_ever(void) {
  for (;;) {
    void* block = malloc(300);
    __asm__ volatile("" ::"r"(block) : "memory");
    free(block);
  }
}
