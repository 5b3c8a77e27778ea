// SPDX-License-Identifier: Apache-2.0
#include "common/text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace tidemark {
namespace {

TEST(EscapeText, KeepsPrintableUtf8) {
  EXPECT_EQ(escape_text("python train.py"), "python train.py");
  EXPECT_EQ(escape_text("größe 模型"), "größe 模型");
}

TEST(EscapeText, DisarmsTerminalControl) {
  EXPECT_EQ(escape_text("a\x1b[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(escape_text("tab\tnew\nline\\"), "tab\\tnew\\nline\\\\");
  EXPECT_EQ(escape_text("\x7f"), "\\x7f");
  EXPECT_EQ(escape_text("\xc2\x9b"), "\\xc2\\x9b") << "C1 control CSI as UTF-8";
}

TEST(EscapeText, DisarmsBidirectionalOverrides) {
  EXPECT_EQ(escape_text("a\xe2\x80\xae z"), "a\\xe2\\x80\\xae z");
}

TEST(EscapeText, ShowsWhatNobodyWouldSee) {
  EXPECT_EQ(escape_text("a\u200b"), "a\\xe2\\x80\\x8b");
  EXPECT_EQ(escape_text("a\u2060"), "a\\xe2\\x81\\xa0");
  EXPECT_EQ(escape_text("a\u061c"), "a\\xd8\\x9c");
}

TEST(EscapeText, ShowsInvalidUtf8AsBytes) {
  EXPECT_EQ(escape_text("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(escape_text("cut \xe6\xa8"), "cut \\xe6\\xa8") << "a name cut at 15 bytes";
  EXPECT_EQ(escape_text("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(escape_text("\xc0\x80"), "\\xc0\\x80") << "an overlong NUL";
}

TEST(EscapeText, KeepsEmbeddedNulVisible) {
  EXPECT_EQ(escape_text(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(JsonEscape, EscapesWhatJsonDemands) {
  std::string out;
  append_json_escaped(out, "q\" b\\ n\n c\x01 d\x7f");
  EXPECT_EQ(out, "q\\\" b\\\\ n\\n c\\u0001 d\\u007f");
}

TEST(JsonEscape, EscapesWhatATerminalActsUponOrReordersText) {
  std::string out;
  append_json_escaped(out, "\u009b31m \u2028 \u202e \u2066 \ufeff \u00e4\U0001f600");
  EXPECT_EQ(out, "\\u009b31m \\u2028 \\u202e \\u2066 \\ufeff \u00e4\U0001f600");
}

TEST(JsonEscape, ReplacesInvalidUtf8) {
  std::string out;
  append_json_escaped(out, "a\xff");
  EXPECT_EQ(out, "a\xEF\xBF\xBD");
}

TEST(Shorten, CutsBetweenCharacters) {
  EXPECT_EQ(shorten("abcdef", 6), "abcdef");
  EXPECT_EQ(shorten("abcdefg", 6), "abc...");
  EXPECT_EQ(shorten("ÄÄÄÄÄÄÄ", 6), "ÄÄÄ...");
  EXPECT_EQ(shorten("abcdef", 2), "..");
}

TEST(Trim, RemovesBlanksOnBothSides) {
  EXPECT_EQ(trim("  a b \n"), "a b");
  EXPECT_EQ(trim(" \t "), "");
}

TEST(NextLine, HandlesAllLineEnds) {
  std::string_view rest = "a\r\n\nlast";
  EXPECT_EQ(next_line(rest), "a");
  EXPECT_EQ(next_line(rest), "");
  EXPECT_EQ(next_line(rest), "last");
  EXPECT_EQ(next_line(rest), std::nullopt);
}

TEST(Split, KeepsEmptyParts) {
  const auto parts = split("a,,b", ',');
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[1], "");
}

TEST(ParseNumber, WantsTheWholeText) {
  EXPECT_EQ(parse_number<std::uint64_t>("42"), 42U);
  EXPECT_EQ(parse_number<std::uint64_t>("42 "), std::nullopt);
  EXPECT_EQ(parse_number<std::uint64_t>("-1"), std::nullopt);
  EXPECT_EQ(parse_number<std::uint64_t>("99999999999999999999"), std::nullopt);
  EXPECT_EQ(parse_number<std::uint64_t>(""), std::nullopt);
}

TEST(WrapText, BreaksAtBlanksAndKeepsNumbersWithTheirUnits) {
  EXPECT_EQ(wrap_text("do ", "aaaa bbbb 12 GiB cc", 12), "do aaaa bbbb\n   12 GiB cc\n");
  EXPECT_EQ(wrap_text("", "no break", 80), "no break\n");
}

TEST(NearestName, FindsWhatWasMisspelled) {
  const std::vector<std::string> names{"find",    "monitor",    "track",
                                       "profile", "--duration", "--pid"};
  EXPECT_EQ(nearest_name("trak", names), "track");
  EXPECT_EQ(nearest_name("moniter", names), "monitor");
  EXPECT_EQ(nearest_name("proifle", names), "profile");
  EXPECT_EQ(nearest_name("--durtion", names), "--duration");
  EXPECT_EQ(nearest_name("fin", names), "find");
}

TEST(NearestName, DoesNotGuessWildly) {
  const std::vector<std::string> names{"find", "monitor", "track"};
  for (const char* word : {"", "x", "python", "list", "help"}) {
    EXPECT_EQ(nearest_name(word, names), "") << word;
  }
  EXPECT_EQ(nearest_name(std::string(100'000, 'm'), names), "");
}

TEST(ToLower, LeavesAllButAsciiLettersAlone) { EXPECT_EQ(to_lower("GiB Ä1"), "gib Ä1"); }

TEST(ShellLine, QuotesOnlyWhatAShellWouldChange) {
  EXPECT_EQ(shell_line({"python", "train.py", "--lr=1e-3"}), "python train.py --lr=1e-3");
  EXPECT_EQ(shell_line({"sh", "-c", "a; b", "it's", ""}), R"(sh -c 'a; b' 'it'\''s' '')");
}

}  // namespace
}  // namespace tidemark
