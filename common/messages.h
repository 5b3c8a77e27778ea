// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "common/result.h"

namespace tidemark {

// All of our own words go to stderr, one line each, escaped: "tidemark: ...".
void print_note(std::string_view text);
// "tidemark: error: <what>", and below it "hint: <what to try next>" when there is one.
void print_error(std::string_view what, std::string_view hint = {});
void print_error(const Error& error, std::string_view hint = {});

// The same texts, for whoever must not wait for the reader of stderr.
std::string note_text(std::string_view text);
std::string error_text(std::string_view what, std::string_view hint = {});

}  // namespace tidemark
