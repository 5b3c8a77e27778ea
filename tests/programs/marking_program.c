/* SPDX-License-Identifier: Apache-2.0 */
/* Marks the steps in its arguments, prints "ready", and ends with its input: by exit, or as the */
/* last argument says: "crash" or "exec PROGRAM ARGUMENTS". */
#include "api/tidemark.h"

int main(int argc, char** argv) {
  char byte;
  int i;
  for (i = 1; i < argc && argv[i][0] >= '0' && argv[i][0] <= '9'; ++i) {
    tidemark_step(atol(argv[i]));
  }
  printf("ready\n");
  fflush(stdout);
  while (read(0, &byte, 1) < 0 && errno == EINTR) {
  }
  if (i < argc && strcmp(argv[i], "crash") == 0) {
    abort();
  }
  if (i + 1 < argc && strcmp(argv[i], "exec") == 0) {
    execv(argv[i + 1], argv + i + 1);
  }
  return 0;
}
