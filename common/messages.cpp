// SPDX-License-Identifier: Apache-2.0
#include "common/messages.h"

#include <signal.h>
#include <unistd.h>

#include <string>

#include "common/io.h"
#include "common/text.h"

namespace tidemark {
namespace {

void put(const std::string& text) {
  const WriteSignalBlock no_signal(SIGPIPE);  // what we do is more than what we print about it
  // A closed stderr leaves nobody to tell.
  (void)write_all(STDERR_FILENO, text);
}

}  // namespace

std::string note_text(std::string_view text) { return "tidemark: " + escape_text(text) + "\n"; }

std::string error_text(std::string_view what, std::string_view hint) {
  const std::string text = "tidemark: error: " + escape_text(what) + "\n";
  return hint.empty() ? text : text + "hint: " + escape_text(hint) + "\n";
}

void print_note(std::string_view text) { put(note_text(text)); }

void print_error(std::string_view what, std::string_view hint) { put(error_text(what, hint)); }

void print_error(const Error& error, std::string_view hint) { print_error(error.what, hint); }

}  // namespace tidemark
