// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tidemark::recording {

// Splits one line of CSV. Quoted fields may hold separators and doubled quotes, but no line breaks;
// their text is kept in `scratch`. False: the quotes do not match.
bool split_csv_line(std::string_view line, char separator, std::vector<std::string_view>& fields,
                    std::string& scratch);

// Appends `field` to a line, in quotes where it needs them.
void append_csv_field(std::string& line, std::string_view field);

// The same for untrusted text: what a spreadsheet would run as a formula (it begins with one of
// = + - @, a tab or a carriage return) gets an apostrophe in front, which makes it text there.
void append_csv_text(std::string& line, std::string_view text);
// Takes that apostrophe off again: what append_csv_text() was given.
std::string_view plain_csv_text(std::string_view field);

}  // namespace tidemark::recording
