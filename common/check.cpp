// SPDX-License-Identifier: Apache-2.0
#include "common/check.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace tidemark {
namespace {

void put(const char* text) {
  // Nothing can be done about a failure here: the process is about to abort.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, std::strlen(text));
}

}  // namespace

void check_failed(const char* condition, const char* why, const char* file, int line) {
  char number[16];
  char* p = number + sizeof number - 1;
  *p = '\0';
  do {
    *--p = static_cast<char>('0' + line % 10);
    line /= 10;
  } while (line > 0 && p > number);

  put("tidemark: internal error: ");
  put(why);
  put(" (");
  put(condition);
  put(") at ");
  put(file);
  put(":");
  put(p);
  put("\n");
  std::abort();
}

}  // namespace tidemark
