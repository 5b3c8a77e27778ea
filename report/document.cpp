// SPDX-License-Identifier: Apache-2.0
#include "report/document.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace tidemark::report {
namespace {

// Which member of a visitor takes which part.
template <typename... Takers>
struct PartVisitor : Takers... {
  using Takers::operator()...;
};
template <typename... Takers>
PartVisitor(Takers...) -> PartVisitor<Takers...>;

// A block that nothing in it can end.
std::string fenced(const std::string& text) {
  std::size_t longest = 2;
  std::size_t run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  return fmt::format("{0}text\n{1}{2}{0}\n", fence, text, text.ends_with('\n') ? "" : "\n");
}

std::string markdown_table(const Table& table) {
  std::string out = "|";
  std::string rule = "|";
  for (const Table::Column& column : table.columns) {
    out += fmt::format(" {}{}|", column.title, column.title.empty() ? "" : " ");
    rule += " --- |";
  }
  out += '\n' + rule + '\n';
  for (const auto& row : table.rows) {
    out += '|';
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string_view mark = table.columns[i].is_code ? "`" : row[i].is_strong ? "**" : "";
      const std::string text = table.columns[i].is_code ? row[i].text : markdown_text(row[i].text);
      out += fmt::format(" {0}{1}{0} |", mark, text);
    }
    out += '\n';
  }
  return out + '\n';
}

}  // namespace

Document& Document::add(Part part) {
  parts_.push_back(std::move(part));
  return *this;
}

Document& Document::row(std::string_view label, std::string_view text) {
  return text.empty() ? *this : add(Rows{std::string(label), {std::string(text)}});
}

Document& Document::rows(std::string_view label, std::vector<std::string> texts) {
  return texts.empty() ? *this : add(Rows{std::string(label), std::move(texts)});
}

Document& Document::table(Table table) {
  return table.rows.empty() ? *this : add(std::move(table));
}

Document& Document::block(std::string text) {
  return text.empty() ? *this : add(Block{std::move(text)});
}

std::string to_text(const Table& table) {
  std::vector<std::vector<Table::Cell>> lines(1);
  for (const Table::Column& column : table.columns) {
    lines.front().push_back({column.title});
  }
  lines.insert(lines.end(), table.rows.begin(), table.rows.end());
  std::vector<std::size_t> widths(table.columns.size());
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      widths[i] = std::max(widths[i], line[i].text.size());
    }
  }
  std::string out;
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      out += table.columns[i].is_right_aligned ? fmt::format("  {:>{}}", line[i].text, widths[i])
                                               : fmt::format("  {:<{}}", line[i].text, widths[i]);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  }
  return out;
}

std::string to_text(const Document& document, TextLayout layout) {
  std::string out;
  const PartVisitor append{
      [&](const Document::Heading& heading) { out += heading.text + '\n'; },
      [&](const Document::Paragraph& paragraph) {
        out += wrap_text(paragraph.before, paragraph.text, layout.columns);
      },
      [&](const Document::Rows& rows) {
        std::string_view label = rows.label;
        for (const std::string& text : rows.texts) {
          out +=
              wrap_text(fmt::format("{:<{}}", label, layout.label_columns), text, layout.columns);
          label = "";
        }
      },
      [&](const Table& table) { out += to_text(table); },
      [&](const Document::Block& block) { out += block.text; },
      [&](const Document::EmptyLine&) { out += '\n'; },
  };
  for (const Document::Part& part : document.parts()) {
    std::visit(append, part);
  }
  return out;
}

std::string to_markdown(const Document& document, std::string_view heading) {
  std::string out;
  bool is_list = false;
  bool is_block = false;
  const PartVisitor append{
      [&](const Document::Heading& part) {
        out += fmt::format("{}{}\n\n", heading, markdown_text(part.text));
      },
      [&](const Document::Paragraph& paragraph) {
        out += markdown_text(paragraph.before + paragraph.text) + "\n\n";
      },
      [&](const Document::Rows& rows) {
        for (const std::string& text : rows.texts) {
          out += fmt::format("- {}: {}\n", rows.label, markdown_text(text));
        }
      },
      [&](const Table& table) { out += markdown_table(table); },
      [&](const Document::Block& block) { out += fenced(block.text); },
      [](const Document::EmptyLine&) {},
  };
  for (const Document::Part& part : document.parts()) {
    const bool was_list = std::exchange(is_list, std::holds_alternative<Document::Rows>(part));
    if (std::exchange(is_block, std::holds_alternative<Document::Block>(part)) ||
        (was_list && !is_list)) {
      out += '\n';
    }
    std::visit(append, part);
  }
  return is_list ? out + '\n' : out;
}

std::string markdown_text(std::string_view text) {
  // Letters, digits, blanks and what no reader of Markdown takes for a sign stay.
  constexpr std::string_view kPlain = " .,:;/+-()%'\"=?";
  // References are looked for in what is rendered: a blank of no width parts them there.
  constexpr std::string_view kReferences = "@#";
  constexpr std::string_view kNoBlank = "&#8203;";
  std::string out;
  for (const char c : text) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || (static_cast<unsigned char>(c) & 0x80U) != 0;
    if (is_letter || kPlain.find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += fmt::format("&#{};", static_cast<int>(c));
      out += kReferences.find(c) == std::string_view::npos ? "" : kNoBlank;
    }
  }
  return out;
}

}  // namespace tidemark::report
