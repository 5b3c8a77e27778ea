// SPDX-License-Identifier: Apache-2.0
// The screen as text, at several sizes.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/text.h"
#include "common/units.h"
#include "dashboard/layout.h"
#include "tests/support/golden.h"
#include "tests/unit/dashboard/sample_dashboard.h"

namespace tidemark::dashboard {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using tests::sample_dashboard;

constexpr Theme kPlain{true, false};
constexpr Theme kAscii{false, false};

std::size_t columns_of(std::string_view line) {
  std::size_t columns = 0;
  while (!line.empty()) {
    line.remove_prefix(std::max<std::size_t>(1, utf8_sequence_length(line)));
    ++columns;
  }
  return columns;
}

std::string picture(const DashboardModel& model, int width, int height, const Theme& theme) {
  return fmt::format("{}\n", fmt::join(screen_text(model, width, height, theme), "\n"));
}

DashboardModel full_model() {
  ScreenInputs around;
  around.can_mark = true;
  around.output_path = "/tmp/job.log";
  around.output = {"Step 1199", "Step 1200"};
  around.sites = {{"train.py:42 collate", "leak", 1.0 * kMiB, 200 * kMiB}};
  around.jobs = {{"7 warmup", "done", 60, 118 * kMiB, 5 * static_cast<std::int64_t>(kMiB)}};
  DashboardModel model = sample_dashboard({}, around);
  model.machine = {Tone::kUnknown,
                   0.68,
                   {"used 21.3 GiB of 31.2 GiB", "available 9.90 GiB", "no swap", "pressure 3 %",
                    "/dev/shm 64.0 MiB"}};
  model.gpus = {
      {"gpu0 A100-SXM4-40GB", 30'000 * kMiB, 40'960 * kMiB, "trainer 110 29.1 GiB", 87, false, 0.0},
      {"gpu1 A100-SXM4-40GB", {}, {}, "", {}, true, 0.0}};
  return model;
}

TEST(Screen, LooksAsItShould) {
  ScreenInputs around;
  around.can_mark = true;
  const DashboardModel model = sample_dashboard({}, around);

  for (const auto& [width, height] : {std::pair(40, 12), std::pair(80, 24), std::pair(120, 40)}) {
    EXPECT_EQ(tests::difference_from_golden(fmt::format("tui/{}x{}.txt", width, height),
                                            picture(model, width, height, kPlain)),
              "");
  }
  EXPECT_EQ(tests::difference_from_golden("tui/80x24-ascii.txt", picture(model, 80, 24, kAscii)),
            "");
  EXPECT_EQ(
      tests::difference_from_golden("tui/120x48-full.txt", picture(full_model(), 120, 48, kPlain)),
      "");
}

TEST(Screen, FillsEverySizeExactly) {
  for (const DashboardModel& model : {sample_dashboard(), full_model()}) {
    for (const auto& [width, height] :
         {std::pair(40, 12), std::pair(41, 13), std::pair(59, 16), std::pair(80, 24),
          std::pair(100, 30), std::pair(120, 40), std::pair(300, 100), std::pair(40, 100),
          std::pair(300, 12)}) {
      const auto lines = screen_text(model, width, height, kPlain);
      EXPECT_THAT(lines, SizeIs(height)) << width << "x" << height;
      for (const std::string& line : lines) {
        EXPECT_LE(columns_of(line), static_cast<std::size_t>(width)) << line;
      }
      EXPECT_THAT(lines.back(), HasSubstr("? help")) << width << "x" << height;
      EXPECT_THAT(lines, Contains(HasSubstr("trainer 110"))) << width << "x" << height;
      EXPECT_THAT(lines.front(), HasSubstr("LEAK"));
    }
  }
}

TEST(Screen, BelowTheLeastSizeIsOnePlainLine) {
  for (const auto& [width, height] : {std::pair(39, 24), std::pair(80, 11), std::pair(1, 1)}) {
    const auto lines = screen_text(sample_dashboard(), width, height, kPlain);
    EXPECT_THAT(lines.front(), testing::StartsWith(width > 10 ? "LEAK 641 MiB" : "L"));
    EXPECT_THAT(std::vector<std::string>(lines.begin() + 1, lines.end()), Each(""));
  }
}

TEST(Screen, InAsciiHasNothingElse) {
  for (const std::string& line : screen_text(full_model(), 120, 48, kAscii)) {
    for (const char c : line) {
      EXPECT_TRUE(c >= ' ' && c <= '~') << line;
    }
  }
}

TEST(Screen, InAsciiReplacesWhatTheTerminalCannotShow) {
  DashboardModel model = sample_dashboard();
  model.tree.rows[0].command = "na\xc3\xafve \xe6\x97\xa5\xe6\x9c\xac.py";  // two wide ones

  const auto text = screen_text(model, 120, 40, kAscii);
  const auto lines = screen_lines(model, 120, 40, kAscii);

  EXPECT_THAT(text, Contains(testing::EndsWith("na?ve ????.py")));
  EXPECT_THAT(lines, Contains(HasSubstr("na?ve ????.py")));
}

TEST(Screen, WithoutColourSetsNone) {
  const std::string drawn =
      fmt::format("{}", fmt::join(screen_lines(full_model(), 120, 48, kPlain), "\n"));
  // Bold, inverted and back, but no 30-37, 90-97 or 38;5 for a colour (39 and 49: the default).
  for (int color = 30; color <= 37; ++color) {
    EXPECT_THAT(drawn, Not(HasSubstr(fmt::format("\x1b[{}m", color))));
    EXPECT_THAT(drawn, Not(HasSubstr(fmt::format("\x1b[{}m", color + 60))));
  }
  EXPECT_THAT(drawn, Not(HasSubstr("38;")));
}

TEST(Screen, WithColourKeepsToTheSixteen) {
  const std::string drawn =
      fmt::format("{}", fmt::join(screen_lines(full_model(), 120, 48, {true, true}), "\n"));

  EXPECT_THAT(drawn, HasSubstr("\x1b[31m"));  // red: it leaks
  EXPECT_THAT(drawn, Not(HasSubstr("38;")));
}

TEST(Screen, ShowsAsMuchOfTheMachineAsThereIsRoomFor) {
  DashboardModel model = full_model();
  EXPECT_THAT(screen_text(model, 120, 48, kPlain),
              Contains("machine ██████░░░░ used 21.3 GiB of 31.2 GiB  available 9.90 GiB  no swap  "
                       "pressure 3 %  /dev/shm 64.0 MiB"));
  EXPECT_THAT(screen_text(model, 120, 48, kAscii), Contains(HasSubstr("machine ######.... used")));
  EXPECT_THAT(screen_text(model, 40, 14, kPlain), Contains("machine used 21.3 GiB of 31.2 GiB"));
  EXPECT_THAT(screen_text(model, 40, 12, kPlain), Not(Contains(HasSubstr("machine"))));
  model.machine.tone = Tone::kBad;
  EXPECT_THAT(screen_text(model, 80, 24, kPlain), Contains(HasSubstr("machine FULL ")));
  model.machine.figures.clear();
  EXPECT_THAT(screen_text(model, 80, 24, kPlain), Not(Contains(HasSubstr("machine"))));
}

TEST(Screen, ShowsTheNextCommandWhereThereIsRoom) {
  DashboardModel model = sample_dashboard();
  model.banner.next = "tidemark profile --pid 110, which names the lines";

  EXPECT_EQ(screen_text(model, 80, 28, kPlain)[3],
            "next: tidemark profile --pid 110, which names the lines");
  EXPECT_THAT(screen_text(model, 80, 27, kPlain), Not(Contains(HasSubstr("next: "))));
}

TEST(Screen, SaysHowLongAgoPssWasRead) {
  const auto lines = screen_text(full_model(), 120, 48, kPlain);

  EXPECT_THAT(lines, Contains(HasSubstr("PSS    READ")));
  EXPECT_THAT(lines, Contains(testing::ContainsRegex("trainer 110 .* 550 MiB  7s ago")));
}

TEST(Screen, ShowsTheCursorAndItsFigures) {
  ViewState state;
  state.cursor_s = 125.0;
  const DashboardModel model = sample_dashboard(state);

  for (const auto& [width, height] : {std::pair(40, 12), std::pair(120, 40), std::pair(300, 100)}) {
    const auto lines = screen_text(model, width, height, kPlain);
    EXPECT_THAT(lines, Contains(testing::StartsWith("00:02:05  tree "))) << width;
    EXPECT_THAT(lines, Contains(HasSubstr("│"))) << width;
  }
  EXPECT_THAT(screen_text(model, 80, 24, kAscii), Contains(HasSubstr("|")));
}

TEST(Screen, HasEveryTextOverItAtEverySize) {
  for (const Overlay overlay :
       {Overlay::kHelp, Overlay::kReasons, Overlay::kSignal, Overlay::kAttach}) {
    ViewState state;
    state.overlay = overlay;
    state.asked_about = tests::kTrainer;
    const DashboardModel model = sample_dashboard(state);
    for (const auto& [width, height] :
         {std::pair(40, 12), std::pair(80, 24), std::pair(300, 100)}) {
      const auto lines = screen_text(model, width, height, kPlain);
      EXPECT_THAT(lines, SizeIs(height));
      EXPECT_THAT(lines, Contains(HasSubstr("─ " + model.overlay->title + " ─")))
          << width << "x" << height;
      for (const std::string& line : lines) {
        EXPECT_LE(columns_of(line), static_cast<std::size_t>(width)) << line;
      }
    }
  }
}

// A label stays to the left of all of its text.
TEST(Screen, WrapsTheHelpBesideItsKeys) {
  ViewState state;
  state.overlay = Overlay::kHelp;

  EXPECT_THAT(screen_text(sample_dashboard(state), 50, 60, kPlain),
              Contains(testing::ContainsRegex(" {14}advice, the next")));
}

TEST(Screen, WithoutGpuHasNoPlaceForIt) {
  EXPECT_THAT(screen_text(sample_dashboard(), 120, 40, kPlain), Not(Contains(HasSubstr("GPU"))));
  EXPECT_THAT(screen_text(full_model(), 120, 48, kPlain),
              AllOf(Contains(HasSubstr("GPU")), Contains(HasSubstr("29.3 GiB of 40.0 GiB"))));
}

TEST(Screen, SaysWhatIsWrongWithAGpu) {
  DashboardModel model = full_model();
  for (GpuModel& gpu : model.gpus) {
    gpu.age_s = 12.0;
  }

  EXPECT_THAT(screen_text(model, 120, 48, kPlain),
              AllOf(Contains(HasSubstr("no answer, 12 s old")), Contains(HasSubstr("LOST: "))));
  EXPECT_THAT(screen_text(model, 40, 48, kPlain), Contains(HasSubstr("gpu1 A100-S... LOST")));
}

TEST(Screen, CountsTheGpusThatFindNoPlace) {
  DashboardModel model = sample_dashboard();
  model.gpus.resize(16, {"gpu", 1, 2, "", {}, false, 0.0});

  EXPECT_THAT(screen_text(model, 120, 48, kPlain), Contains(HasSubstr("and 9 more")));
}

// A usual machine and a usual terminal: they do not fit, which is no reason to show none.
TEST(Screen, ShowsAsManyGpusAsFit) {
  DashboardModel model = sample_dashboard();
  model.gpus.resize(8, {"gpu", 1, 2, "", {}, false, 0.0});

  EXPECT_THAT(screen_text(model, 80, 24, kPlain),
              AllOf(Contains(HasSubstr("─ GPU ─")), Contains(HasSubstr("and 5 more"))));
  model.sites = {{"train.py:42 collate", "leak", 1.0, 1}};
  EXPECT_THAT(screen_text(model, 80, 24, kPlain),
              AllOf(Contains(HasSubstr("─ GPU ─")), Contains(HasSubstr("train.py:42"))));
}

TEST(Screen, ShowsTheLastJobs) {
  DashboardModel model = sample_dashboard();
  for (int i = 1; i <= 20; ++i) {
    model.jobs.push_back({"job" + std::to_string(i), "done", i, 7 * kMiB, 0});
  }

  const auto lines = screen_text(model, 120, 48, kPlain);

  EXPECT_THAT(lines, Contains(HasSubstr("job20")));
  EXPECT_THAT(lines, Not(Contains(HasSubstr("job14"))));
}

TEST(Screen, HelpHasEveryNoteTheNewestFirst) {
  ViewState state;
  state.overlay = Overlay::kHelp;
  ScreenInputs around;
  around.notes = {"an older note", "the newest note: " + std::string(56, 'x') + " and its end"};
  const auto screen_at = [&](std::size_t line) {
    state.overlay_line = line;
    return screen_text(sample_dashboard(state, around), 80, 20, kPlain);
  };

  const DashboardModel model = sample_dashboard(state, around);
  const Scene scene = scene_of(model, plan_layout(model, 80, 20));
  ASSERT_GE(scene.last_overlay_line, 1U);
  EXPECT_THAT(screen_at(0), Contains(HasSubstr("up/down scroll, others close")));
  EXPECT_THAT(screen_at(0), Not(Contains(HasSubstr("an older note"))));
  for (const std::size_t end : {scene.last_overlay_line, std::size_t{1000}}) {
    const auto lines = screen_at(end);
    EXPECT_THAT(lines, Contains(HasSubstr(" and its end"))) << "wrapped, not cut";
    EXPECT_THAT(lines, Contains(HasSubstr("an older note")));
    EXPECT_THAT(lines, Not(Contains(HasSubstr("q            quit"))));
  }
  const std::string words = tests::words_of(model.overlay);
  EXPECT_LT(words.find(around.notes[1]), words.find(around.notes[0]));
}

TEST(Screen, HelpLiesOverEverything) {
  ViewState state;
  state.overlay = Overlay::kHelp;

  const auto lines = screen_text(sample_dashboard(state), 80, 24, kPlain);

  EXPECT_THAT(lines, Contains(HasSubstr("export this screen as text")));
  EXPECT_THAT(lines, Not(Contains(HasSubstr("mark this moment"))));
}

// "+205 KiB/s" would be another rate than "+205 KiB/step".
TEST(Screen, ShowsWhereANarrowLineIsCut) {
  DashboardModel model = sample_dashboard();
  model.banner.whose = "the tree, mostly trainer 110";
  model.banner.finding = "+205 KiB/step, +60.0 MiB/min since step 25";

  const auto lines = screen_text(model, 40, 12, kPlain);
  EXPECT_THAT(lines[0], AllOf(HasSubstr(" limit 32.0 GiB"), testing::EndsWith(" 00:04:00")));
  EXPECT_EQ(lines[1], "+205 KiB/step, +60.0 MiB/min since st...");
  EXPECT_THAT(lines, Contains(testing::StartsWith("── 22 processes, foot...")));
  EXPECT_EQ(screen_text(model, 80, 24, kPlain)[1],
            "the tree, mostly trainer 110: +205 KiB/step, +60.0 MiB/min since step 25");
  model.banner.watched = std::string(200, 'x');
  EXPECT_THAT(screen_text(model, 80, 24, kPlain)[2], testing::EndsWith("xxx..."));
}

TEST(Screen, CutsALongMessageAndNotTheState) {
  DashboardModel model = sample_dashboard();
  model.status.state = "REPLAY 20x ENDED";
  model.status.message = std::string(100, 'x');

  EXPECT_EQ(screen_text(model, 80, 24, kPlain).back(),
            " REPLAY 20x ENDED  " + std::string(58, 'x') + "...");
}

TEST(Screen, ShowsTheSelectedRowOfALongTree) {
  ViewState state;
  state.flipped.insert(Role::kCompileWorker);
  state.selected = RowId{Role::kCompileWorker, {219, 3}};

  const auto lines = screen_text(sample_dashboard(state), 80, 24, kPlain);

  EXPECT_THAT(lines, Contains(HasSubstr("compile_worker 219")));
}

TEST(Screen, ShowsUnknownSizesAsUnknown) {
  RunHistory history;
  Tick tick = tests::dashboard_tick(0, 0);
  tick.processes[1].rss_anon_bytes.reset();
  history.add(tick, tests::kTrainer);

  const auto lines = screen_text(build_model(history, {}, {}, {}), 80, 24, kPlain);

  EXPECT_THAT(lines, Contains(testing::ContainsRegex("trainer 110 +\\?")));
}

TEST(Screen, SaysThatTheTreeHasEnded) {
  DashboardModel model = sample_dashboard();
  model.tree.has_ended = true;

  const auto lines = screen_text(model, 80, 24, kPlain);

  EXPECT_THAT(lines, Contains(HasSubstr("22 processes until the end, footprint 641 MiB")));
  EXPECT_THAT(lines, Contains(testing::ContainsRegex("trainer 110 .* ended ")));
}

TEST(Screen, OfARunWithoutASampleIsNoProblem) {
  const RunHistory history;

  EXPECT_THAT(screen_text(build_model(history, {}, {}, {}), 80, 24, kPlain), SizeIs(24));
}

TEST(Layout, AddsUpToTheHeight) {
  const DashboardModel model = full_model();
  for (int height = kLeastHeight; height <= 120; ++height) {
    const Layout layout = plan_layout(model, 100, height);
    EXPECT_EQ(layout.banner + layout.machine + layout.timeline + layout.gpu + layout.sites +
                  layout.jobs + layout.tree + layout.detail + layout.output + layout.status,
              height);
    EXPECT_GE(layout.plot_lines(), 1);
    EXPECT_GE(layout.tree_rows(), 2);
  }
}

std::size_t first_row_of(std::size_t selected, std::size_t before, std::size_t rows,
                         std::size_t shown) {
  TreeModel tree;
  tree.rows.resize(rows);
  tree.selected = selected;
  tree.first_row = before;
  return first_visible_row(tree, shown);
}

TEST(Layout, KeepsTheSelectedRowInSight) {
  EXPECT_EQ(first_row_of(0, 0, 100, 10), 0U);
  EXPECT_EQ(first_row_of(50, 0, 100, 10), 41U) << "no farther than needed";
  EXPECT_EQ(first_row_of(50, 90, 100, 10), 50U);
  EXPECT_EQ(first_row_of(99, 0, 100, 10), 90U);
  EXPECT_EQ(first_row_of(3, 2, 4, 10), 0U);
  EXPECT_EQ(first_row_of(3, 0, 4, 0), 0U);
  EXPECT_EQ(first_row_of(12, 90, 20, 10), 10U) << "rows have gone";
}

TEST(Layout, LeavesTheRowsWhereTheyAre) {
  for (std::size_t selected = 40; selected < 50; ++selected) {
    EXPECT_EQ(first_row_of(selected, 40, 100, 10), 40U);
  }
}

TEST(Layout, HasDetailsOnAUsualTerminal) {
  DashboardModel model = full_model();
  model.gpus.clear();
  model.sites.clear();
  model.jobs.clear();
  EXPECT_EQ(plan_layout(model, 80, 23).detail, 0);
  EXPECT_GE(plan_layout(model, 80, 24).detail, 2) << "beside the output of a command";
  model.output_path.clear();
  EXPECT_EQ(plan_layout(model, 80, 24).detail, 5);
  model.tree.rows.resize(100);
  EXPECT_GE(plan_layout(model, 80, 24).tree_rows(), 5) << "beside a long tree";
}

TEST(Layout, TellsTheMouseWhereTheRowsAre) {
  const DashboardModel model = full_model();
  const Layout layout = plan_layout(model, 120, 48);

  const Scene scene = scene_of(model, layout);

  const auto lines = screen_text(model, 120, 48, kPlain);
  EXPECT_THAT(lines[static_cast<std::size_t>(scene.first_row_y)], HasSubstr("trainer 110"));
  EXPECT_THAT(lines[static_cast<std::size_t>(scene.timeline_y)], HasSubstr("footprint of the"));
}

// Of a run that has no time nothing on the screen may look like one.
TEST(Screen, OfARunWithoutTimeShowsSteps) {
  const tests::SampleRun run = tests::steps_only_run(240);

  for (const auto zoom : {Zoom::kAll, Zoom::kMinute}) {
    ViewState state;
    state.zoom = zoom;
    const DashboardModel model = build_model(run.history, run.judged, state, {});
    const std::string text = picture(model, 120, 40, kPlain);

    EXPECT_THAT(text, HasSubstr(" step 240\n"));
    EXPECT_THAT(text, HasSubstr(zoom == Zoom::kAll ? "step 0 " : "step 180 "));
    EXPECT_THAT(text, HasSubstr("+1.00 MiB/step    540 MiB")) << "the column beside RSS";
    EXPECT_THAT(text, Not(testing::ContainsRegex("[0-9][0-9]:[0-9][0-9]"))) << text;
    EXPECT_THAT(text, Not(HasSubstr("/min"))) << text;
    EXPECT_THAT(text, Not(HasSubstr(" min"))) << text;
  }
}

}  // namespace
}  // namespace tidemark::dashboard
