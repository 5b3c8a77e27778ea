// SPDX-License-Identifier: Apache-2.0
// Lines, fields and times: what the importers of text stand on.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "common/io.h"
#include "recording/import/csv_line.h"
#include "recording/import/text_input.h"
#include "recording/import/timestamp.h"
#include "tests/support/temp_tree.h"

namespace tidemark::recording {
namespace {

std::vector<std::string> lines_of(std::string_view content) {
  const tests::TempTree dir;
  dir.write("text", content);
  TextInput input(std::move(*open_file(dir.path("text"), O_RDONLY)), "text");
  std::vector<std::string> lines;
  TextInput::Line line;
  while (input.next_line(line)) {
    lines.push_back(line.is_too_long ? "(too long)" : std::string(line.text));
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST(TextInput, SplitsLinesWithAndWithoutTheirEnd) {
  EXPECT_EQ(lines_of("a\nb\r\n\nc"), (Lines{"a", "b", "", "c"}));
  EXPECT_EQ(lines_of(""), Lines{});
  EXPECT_EQ(lines_of("\xEF\xBB\xBF"
                     "a\n"),
            Lines{"a"});
}

TEST(TextInput, PassesOverALineThatIsTooLong) {
  const std::string longest(TextInput::kMaxLineBytes, 'x');

  EXPECT_EQ(lines_of("a\n" + longest + "\nb\n"), (Lines{"a", longest, "b"}));
  EXPECT_EQ(lines_of("a\n" + longest + "x\nb\n"), (Lines{"a", "(too long)", "b"}));
  EXPECT_EQ(lines_of(std::string(1'000'000, 'x') + "\nb"), (Lines{"(too long)", "b"}));
  EXPECT_EQ(lines_of(std::string(1'000'000, 'x')), Lines{"(too long)"});
}

TEST(TextInput, KeepsLinesWholeAcrossItsBuffer) {
  std::string content;
  Lines expected;
  for (int i = 0; i < 100'000; ++i) {
    expected.push_back("line " + std::to_string(i));
    content += expected.back() + "\n";
  }

  EXPECT_EQ(lines_of(content), expected);
}

TEST(TextInput, ReportsAReadThatFails) {
  const tests::TempTree dir;
  TextInput input(std::move(*open_file(dir.path(), O_RDONLY)), "a directory");
  TextInput::Line line;

  EXPECT_FALSE(input.next_line(line));

  ASSERT_TRUE(input.error());
  EXPECT_EQ(input.error()->what, "a directory: cannot read: Is a directory");
}

TEST(CsvLine, WritesWhatItReads) {
  const std::vector<std::string> fields{"plain", "with, comma", "a \"quote\"", "", "semi;colon"};
  std::string line;
  for (const std::string& field : fields) {
    line += line.empty() ? "" : ",";
    append_csv_field(line, field);
  }

  std::vector<std::string_view> parsed;
  std::string scratch;

  ASSERT_TRUE(split_csv_line(line, ',', parsed, scratch));
  EXPECT_EQ(std::vector<std::string>(parsed.begin(), parsed.end()), fields);
}

TEST(CsvText, IsNoFormulaInASpreadsheet) {
  const auto written = [](std::string_view text) {
    std::string line;
    append_csv_text(line, text);
    return line;
  };

  EXPECT_EQ(written("=HYPERLINK(A1)"), "'=HYPERLINK(A1)");
  EXPECT_EQ(written("+1"), "'+1");
  EXPECT_EQ(written("-1"), "'-1");
  EXPECT_EQ(written("@SUM(A1,A2)"), "\"'@SUM(A1,A2)\"");
  EXPECT_EQ(written("\t=1"), "\"'\t=1\"");
  EXPECT_EQ(written("\r=1"), "\"'\r=1\"");
  EXPECT_EQ(written("python3"), "python3");
  EXPECT_EQ(written("'quoted'"), "'quoted'");
  EXPECT_EQ(written(""), "");
}

TEST(CsvText, IsReadAsItWas) {
  for (const std::string text : {"=1", "+1", "'=1", "''=1", "'quoted'", "'", "''", "", "a=1"}) {
    std::string line;
    append_csv_text(line, text);

    EXPECT_EQ(plain_csv_text(line), text);
  }
}

TEST(IsoTime, ReadsDatesWithAndWithoutZone) {
  constexpr double kNoon = 1'709'294'400;  // 2024-03-01T12:00:00Z, the day after a leap day

  EXPECT_EQ(parse_iso_time("2024-03-01T12:00:00Z"), kNoon);
  EXPECT_EQ(parse_iso_time("2024-03-01 12:00:00"), kNoon);
  EXPECT_EQ(parse_iso_time("2024-03-01T12:00"), kNoon);
  EXPECT_EQ(parse_iso_time("2024-03-01T12:00:00.25"), kNoon + 0.25);
  EXPECT_EQ(parse_iso_time("2024-03-01 12:00:00,25 +02:00"), kNoon + 0.25 - 7200);
  EXPECT_EQ(parse_iso_time("2024-03-01T12:00:00-0530"), kNoon + 19800);
}

TEST(IsoTime, RefusesWhatIsNoDate) {
  for (const char* text :
       {"", "2024", "2024-13-01T00:00:00", "2023-02-29T00:00:00", "2024-01-01",
        "2024-01-01T24:00:00", "2024-01-01T00:61:00", "2024-01-01T00:00:00.",
        "2024-01-01T00:00:00Zulu", "24-01-01T00:00:00", "2024-01-01T00:00:00+2"}) {
    EXPECT_EQ(parse_iso_time(text), std::nullopt) << text;
  }
}

TEST(TimeAxis, LeavesShortTimesAsTheyAre) {
  TimeAxis axis(std::nullopt);

  EXPECT_EQ(axis.seconds("12.5"), 12.5);
  EXPECT_EQ(axis.seconds("13"), 13.0);
  EXPECT_EQ(axis.start_wall_ns(), std::nullopt);
}

TEST(TimeAxis, UsesTheUnitOfTheColumn) {
  TimeAxis axis(1e-3);

  EXPECT_EQ(axis.seconds("1500"), 1.5);
}

TEST(TimeAxis, RecognisesDatesInEveryUnit) {
  for (const char* first :
       {"1700000000", "1700000000000", "1700000000000000", "1700000000000000000"}) {
    TimeAxis axis(std::nullopt);
    EXPECT_EQ(axis.seconds(first), 0.0) << first;
    EXPECT_EQ(axis.start_wall_ns(), 1'700'000'000'000'000'000) << first;
  }
}

TEST(TimeAxis, RefusesTimesThatNoRunLasts) {
  TimeAxis hours(3600.0);
  TimeAxis unnamed(std::nullopt);
  TimeAxis steps = TimeAxis::of_steps();

  EXPECT_EQ(hours.seconds("1e308"), std::nullopt);
  EXPECT_EQ(hours.seconds("-1e308"), std::nullopt);
  EXPECT_EQ(hours.seconds("2"), 7200.0);  // the bad one has decided nothing
  EXPECT_EQ(unnamed.seconds("1e308"), std::nullopt);
  EXPECT_EQ(unnamed.seconds("3"), 3.0);
  EXPECT_EQ(steps.seconds("9007199254740994"), std::nullopt);
  EXPECT_EQ(steps.seconds("9007199254740992"), 0x1p53);
}

TEST(TimeAxis, NeverTakesStepsForDates) {
  TimeAxis axis = TimeAxis::of_steps();

  EXPECT_EQ(axis.seconds("1700000000"), 1'700'000'000.0);
}

TEST(TimeAxis, StaysWithTheKindOfTheFirstTime) {
  TimeAxis axis(std::nullopt);
  ASSERT_TRUE(axis.seconds("1"));

  EXPECT_EQ(axis.seconds("2024-03-01T12:00:00Z"), std::nullopt);
}

}  // namespace
}  // namespace tidemark::recording
