// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/text.h"

namespace tidemark::report {

// The figures of a report in columns. Cells are escaped for terminals.
struct Table {
  struct Column {
    std::string title;
    bool is_right_aligned = false;
    bool is_code = false;  // names of our own, for formats that set them apart
  };
  struct Cell {
    std::string text;
    bool is_strong = false;
  };
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
};

// The parts of a report, from which each format makes its own text. All of it is escaped
// (escape_text) when it is added.
class Document {
 public:
  struct Heading {
    std::string text;
  };
  struct Paragraph {
    std::string before;  // "note: "; later lines begin below what follows it
    std::string text;
  };
  // Lines under a common label.
  struct Rows {
    std::string label;
    std::vector<std::string> texts;
  };
  // Lines as they are: a chart, call stacks.
  struct Block {
    std::string text;
  };
  struct EmptyLine {};
  using Part = std::variant<Heading, Paragraph, Rows, Table, Block, EmptyLine>;

  Document& heading(std::string text) { return add(Heading{std::move(text)}); }
  Document& paragraph(std::string text, std::string before = "") {
    return add(Paragraph{std::move(before), std::move(text)});
  }
  // What has no text is left out.
  Document& row(std::string_view label, std::string_view text);
  Document& rows(std::string_view label, std::vector<std::string> texts);
  Document& table(Table table);
  Document& block(std::string text);
  Document& empty_line() { return add(EmptyLine{}); }

  const std::vector<Part>& parts() const { return parts_; }
  bool is_empty() const { return parts_.empty(); }

 private:
  Document& add(Part part);

  std::vector<Part> parts_;
};

// For terminals and logs.
struct TextLayout {
  std::size_t columns = kLineColumns;
  std::size_t label_columns = 9;
};
std::string to_text(const Document& document, TextLayout layout = {});
std::string to_text(const Table& table);

// For comments on pull requests. `heading`: what stands before one.
std::string to_markdown(const Document& document, std::string_view heading = "### ");
// Escaped text, as the parts of a document are: nothing in it is taken for Markdown or HTML, and
// nobody is notified by an @name or #number in it.
std::string markdown_text(std::string_view text);

}  // namespace tidemark::report
