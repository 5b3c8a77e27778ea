// SPDX-License-Identifier: Apache-2.0
#include "report/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark::report {
namespace {

using testing::HasSubstr;

Document sample_document() {
  Document document;
  document.heading("FAIL: train").paragraph("It grows.", "note: ");
  document.table({{{"budget", false, true}, {"measured", true}, {""}},
                  {{{"max_peak"}, {"12 MiB"}, {"EXCEEDED", true}}, {{"x"}, {"1 GiB"}, {"ok"}}}});
  document.rows("left", {"pid 1", "pid 2"}).rows("note", {}).row("next", "");
  return document.empty_line().block("##\n#").paragraph("End.");
}

TEST(Document, AsTextHasAlignedColumnsAndLabels) {
  EXPECT_EQ(to_text(sample_document()),
            "FAIL: train\n"
            "note: It grows.\n"
            "  budget    measured\n"
            "  max_peak    12 MiB  EXCEEDED\n"
            "  x            1 GiB  ok\n"
            "left     pid 1\n"
            "         pid 2\n"
            "\n"
            "##\n#End.\n");
}

TEST(Document, AsTextBreaksLinesAtItsWidth) {
  Document document;
  document.row("left", "one two").paragraph("three four", "a: ");

  EXPECT_EQ(to_text(document, {.columns = 10, .label_columns = 6}),
            "left  one\n      two\na: three\n   four\n");
}

TEST(Document, AsMarkdownHasATableAListAndFences) {
  EXPECT_EQ(to_markdown(sample_document()),
            "### FAIL: train\n\n"
            "note: It grows.\n\n"
            "| budget | measured | |\n| --- | --- | --- |\n"
            "| `max_peak` | 12 MiB | **EXCEEDED** |\n| `x` | 1 GiB | ok |\n\n"
            "- left: pid 1\n- left: pid 2\n\n"
            "```text\n##\n#\n```\n\n"
            "End.\n\n");
}

TEST(Document, NothingInABlockEndsIt) {
  Document document;
  document.block("a\n````\n");

  EXPECT_EQ(to_markdown(document), "`````text\na\n````\n`````\n");
}

TEST(MarkdownText, TakesNothingForMarkdown) {
  EXPECT_EQ(markdown_text("a|b<c>"), "a&#124;b&#60;c&#62;");
  EXPECT_THAT(markdown_text("*x*"), HasSubstr("&#42;"));
}

// They are looked for in what is rendered, where an entity is the sign again.
TEST(MarkdownText, NotifiesNobody) {
  EXPECT_EQ(markdown_text("@octocat"), "&#64;&#8203;octocat");
  EXPECT_EQ(markdown_text("see #12"), "see &#35;&#8203;12");
}

TEST(MarkdownText, DoesNotEscapeTwice) {
  EXPECT_EQ(markdown_text(escape_text("a\tb")), "a&#92;tb") << "one backslash";
}

}  // namespace
}  // namespace tidemark::report
