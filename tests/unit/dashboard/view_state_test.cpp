// SPDX-License-Identifier: Apache-2.0
#include "dashboard/view_state.h"

#include <string>

#include <gtest/gtest.h>

namespace tidemark::dashboard {
namespace {

const RowId kTrainerRow{Role::kTrainer, {10, 1}};
const RowId kWorkersRow{Role::kCompileWorker, {}};
const RowId kWorkerRow{Role::kCompileWorker, {20, 1}};

Scene scene() {
  Scene scene;
  scene.rows = {kTrainerRow, kWorkersRow, kWorkerRow};
  scene.rows_shown = 3;
  scene.first_row_y = 20;
  scene.timeline_y = 3;
  scene.timeline_height = 10;
  scene.span_s = 3600.0;
  scene.window_s = 600.0;
  scene.can_mark = true;
  return scene;
}

Key letter(const std::string& text) { return {Key::Kind::kText, text, 0, 0}; }
Key named(Key::Kind kind) { return {kind, {}, 0, 0}; }

ViewState after(ViewState state, const std::vector<Key>& keys) {
  for (const Key& key : keys) {
    state = apply_key(state, key, scene()).state;
  }
  return state;
}

TEST(Keys, QuitExportMarkAndRedrawAreCommands) {
  EXPECT_EQ(apply_key({}, letter("q"), scene()).command, Command::kQuit);
  EXPECT_EQ(apply_key({}, letter("e"), scene()).command, Command::kExport);
  EXPECT_EQ(apply_key({}, letter("m"), scene()).command, Command::kMark);
  EXPECT_EQ(apply_key({}, {Key::Kind::kControl, "l", 0, 0}, scene()).command, Command::kRedraw);
}

TEST(Keys, MarkDoesNothingWhereThereIsNothingToMark) {
  Scene replay = scene();
  replay.can_mark = false;

  EXPECT_EQ(apply_key({}, letter("m"), replay).command, Command::kNone);
}

TEST(Keys, HelpOpensAndAnyKeyClosesItWithoutDoingAnythingElse) {
  const ViewState open = after({}, {letter("?")});
  EXPECT_TRUE(open.shows_help);

  const ViewState closed = after(open, {letter("s")});

  EXPECT_EQ(closed, ViewState{});
}

TEST(Keys, ALongHelpIsScrolledAndClosedByTheOthers) {
  Scene with_long_help = scene();
  with_long_help.last_help_line = 5;
  const auto press = [&](const ViewState& state, const Key& key) {
    return apply_key(state, key, with_long_help).state;
  };
  const ViewState open = after({}, {letter("?")});

  const ViewState down = press(press(open, named(Key::Kind::kDown)), letter("j"));
  EXPECT_TRUE(down.shows_help);
  EXPECT_EQ(down.help_line, 2U);
  EXPECT_EQ(press(down, named(Key::Kind::kUp)).help_line, 1U);
  EXPECT_EQ(press(down, named(Key::Kind::kEnd)).help_line, 5U);
  EXPECT_EQ(press(down, named(Key::Kind::kPageUp)).help_line, 0U);
  EXPECT_EQ(press(down, named(Key::Kind::kWheelDown)).help_line, 5U);
  EXPECT_EQ(press(down, letter("x")), ViewState{});
  EXPECT_EQ(after(open, {named(Key::Kind::kDown)}), ViewState{}) << "nothing to scroll";
}

TEST(Keys, QuitWorksInHelpToo) {
  EXPECT_EQ(apply_key(after({}, {letter("?")}), letter("q"), scene()).command, Command::kQuit);
}

TEST(Keys, SpacePausesAndGoesOn) {
  EXPECT_TRUE(after({}, {letter(" ")}).is_paused);
  EXPECT_FALSE(after({}, {letter(" "), letter(" ")}).is_paused);
}

TEST(Keys, ArrowsAndVimKeysSelectRowsAndStopAtTheEnds) {
  EXPECT_EQ(after({}, {named(Key::Kind::kDown)}).selected, kWorkersRow);
  EXPECT_EQ(after({}, {letter("j"), letter("j")}).selected, kWorkerRow);
  EXPECT_EQ(after({}, {letter("j"), letter("j"), letter("j")}).selected, kWorkerRow);
  EXPECT_EQ(after({}, {letter("j"), letter("k")}).selected, kTrainerRow);
  EXPECT_EQ(after({}, {named(Key::Kind::kUp)}).selected, kTrainerRow);
  EXPECT_EQ(after({}, {letter("G")}).selected, kWorkerRow);
  EXPECT_EQ(after({}, {named(Key::Kind::kEnd), named(Key::Kind::kHome)}).selected, kTrainerRow);
  EXPECT_EQ(after({}, {named(Key::Kind::kPageDown)}).selected, kWorkerRow);
  EXPECT_EQ(after({}, {letter("G"), named(Key::Kind::kPageUp)}).selected, kTrainerRow);
}

TEST(Keys, StartFromTheRowThatIsSelectedOnTheScreen) {
  Scene shown = scene();
  shown.selected = 1;

  EXPECT_EQ(apply_key({}, named(Key::Kind::kDown), shown).state.selected, kWorkerRow);
}

TEST(Keys, NothingHappensInAnEmptyTree) {
  const Scene empty;

  for (const Key::Kind kind : {Key::Kind::kDown, Key::Kind::kUp, Key::Kind::kEnter, Key::Kind::kEnd,
                               Key::Kind::kPageDown, Key::Kind::kMousePress}) {
    EXPECT_EQ(apply_key({}, named(kind), empty).state, ViewState{});
  }
}

TEST(Keys, LeftAndRightGoBackAndForthInTime) {
  EXPECT_DOUBLE_EQ(after({}, {named(Key::Kind::kLeft)}).back_s, 150.0);
  EXPECT_DOUBLE_EQ(after({}, {letter("h"), letter("h"), letter("l")}).back_s, 150.0);
  EXPECT_DOUBLE_EQ(after({}, {named(Key::Kind::kRight)}).back_s, 0.0);
  const ViewState timeline = after({}, {named(Key::Kind::kTab)});
  EXPECT_DOUBLE_EQ(after(timeline, {named(Key::Kind::kHome)}).back_s, 3000.0);
  EXPECT_DOUBLE_EQ(after(timeline, {named(Key::Kind::kHome), named(Key::Kind::kEnd)}).back_s, 0.0);
  EXPECT_DOUBLE_EQ(after(timeline, {named(Key::Kind::kPageUp)}).back_s, 600.0);
}

TEST(Keys, ZoomGoesRoundAndTheWholeRunHasNoPlaceToScrollTo) {
  EXPECT_EQ(after({}, {letter("z")}).zoom, Zoom::kMinute);
  EXPECT_EQ(after({}, {letter("z"), letter("z")}).zoom, Zoom::kTenMinutes);
  EXPECT_EQ(after({}, {letter("z"), letter("z"), letter("z")}).zoom, Zoom::kHour);
  const ViewState all =
      after({}, {letter("z"), letter("h"), letter("z"), letter("z"), letter("z")});
  EXPECT_EQ(all.zoom, Zoom::kAll);
  EXPECT_DOUBLE_EQ(all.back_s, 0.0);
}

TEST(Keys, UpAndDownZoomWhenTheTimelineHasTheFocus) {
  const ViewState timeline = after({}, {named(Key::Kind::kTab)});
  EXPECT_EQ(timeline.focus, Focus::kTimeline);
  EXPECT_EQ(after(timeline, {named(Key::Kind::kUp)}).zoom, Zoom::kHour);
  EXPECT_EQ(after(timeline, {named(Key::Kind::kUp), named(Key::Kind::kDown)}).zoom, Zoom::kAll);
  EXPECT_EQ(after(timeline, {named(Key::Kind::kTab)}).focus, Focus::kTree);
}

TEST(Keys, SortGoesRound) {
  EXPECT_EQ(after({}, {letter("s")}).sort, SortBy::kRss);
  EXPECT_EQ(after({}, {letter("s"), letter("s"), letter("s"), letter("s"), letter("s")}).sort,
            SortBy::kFootprint);
}

TEST(Keys, EnterOpensAndClosesTheRoleOfTheSelectedRow) {
  const ViewState flipped = after({}, {letter("j"), named(Key::Kind::kEnter)});
  EXPECT_TRUE(flipped.flipped.contains(Role::kCompileWorker));

  const ViewState back = after(flipped, {letter("G"), named(Key::Kind::kEnter)});

  EXPECT_FALSE(back.flipped.contains(Role::kCompileWorker));
  EXPECT_EQ(back.selected, kWorkersRow) << "its processes disappear";
}

TEST(Keys, EnterChangesNothingThatAFilterHides) {
  const ViewState filtered =
      after({}, {letter("j"), letter("/"), letter("c"), named(Key::Kind::kEnter)});

  EXPECT_EQ(after(filtered, {named(Key::Kind::kEnter)}), filtered);
}

TEST(Keys, LettersOfAFilterAreLetters) {
  const ViewState typing = after({}, {letter("/"), letter("q"), letter("s"), letter("\xc3\xa4")});
  EXPECT_TRUE(typing.is_typing_filter);
  EXPECT_EQ(typing.filter, "qs\xc3\xa4");

  EXPECT_EQ(after(typing, {named(Key::Kind::kBackspace)}).filter, "qs");
  EXPECT_FALSE(after(typing, {named(Key::Kind::kEnter)}).is_typing_filter);
  EXPECT_EQ(after(typing, {named(Key::Kind::kEnter)}).filter, "qs\xc3\xa4");
  EXPECT_EQ(after(typing, {named(Key::Kind::kEscape)}).filter, "");
  EXPECT_EQ(after(typing, {named(Key::Kind::kEnter), named(Key::Kind::kEscape)}).filter, "");
}

TEST(Keys, AFilterHasAnEnd) {
  ViewState state = after({}, {letter("/")});

  state = after(state, std::vector<Key>(500, letter("x")));

  EXPECT_EQ(state.filter.size(), 64U);
}

TEST(Keys, EscapeLeadsBackToNow) {
  EXPECT_DOUBLE_EQ(after({}, {letter("h"), named(Key::Kind::kEscape)}).back_s, 0.0);
}

TEST(Mouse, SelectsARowAndOpensARoleOnTheSecondPress) {
  const Key press{Key::Kind::kMousePress, {}, 5, 21};
  EXPECT_EQ(after({}, {press}).selected, kWorkersRow);

  EXPECT_TRUE(after({}, {press, press}).flipped.contains(Role::kCompileWorker));
}

TEST(Mouse, GivesTheTimelineTheFocusAndTheWheelScrollsWhatIsBelowIt) {
  EXPECT_EQ(after({}, {{Key::Kind::kMousePress, {}, 5, 4}}).focus, Focus::kTimeline);
  EXPECT_DOUBLE_EQ(after({}, {{Key::Kind::kWheelUp, {}, 5, 4}}).back_s, 150.0);
  EXPECT_EQ(after({}, {{Key::Kind::kWheelDown, {}, 5, 21}}).selected, kWorkerRow);
  EXPECT_EQ(after({}, {{Key::Kind::kMousePress, {}, 5, 500}}), ViewState{});
}

}  // namespace
}  // namespace tidemark::dashboard
