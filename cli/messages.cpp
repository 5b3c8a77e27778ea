// SPDX-License-Identifier: Apache-2.0
#include "cli/messages.h"

#include <unistd.h>

#include <string>

#include "common/io.h"
#include "common/text.h"

namespace tidemark::cli {
namespace {

void put_line(std::string_view prefix, std::string_view text) {
  const std::string line = std::string(prefix) + escape_text(text) + "\n";
  // A closed stderr leaves nobody to tell.
  (void)write_all(STDERR_FILENO, line);
}

}  // namespace

void print_note(std::string_view text) { put_line("tidemark: ", text); }

void print_error(std::string_view what, std::string_view hint) {
  put_line("tidemark: error: ", what);
  if (!hint.empty()) {
    put_line("hint: ", hint);
  }
}

void print_error(const Error& error, std::string_view hint) { print_error(error.what, hint); }

}  // namespace tidemark::cli
