// SPDX-License-Identifier: Apache-2.0
#include "dashboard/view_state.h"

#include <signal.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

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
  scene.plot_x = 10;
  scene.plot_columns = 60;  // 10 s each
  scene.span_s = 3600.0;
  scene.window_from_s = 3000.0;
  scene.window_s = 600.0;
  scene.has_limit = true;
  scene.can_signal = true;
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
  EXPECT_TRUE(open.overlay == Overlay::kHelp);

  const ViewState closed = after(open, {letter("s")});

  EXPECT_EQ(closed, ViewState{});
}

TEST(Keys, ALongHelpIsScrolledAndClosedByTheOthers) {
  Scene with_long_help = scene();
  with_long_help.last_overlay_line = 5;
  const auto press = [&](const ViewState& state, const Key& key) {
    return apply_key(state, key, with_long_help).state;
  };
  const ViewState open = after({}, {letter("?")});

  const ViewState down = press(press(open, named(Key::Kind::kDown)), letter("j"));
  EXPECT_TRUE(down.overlay == Overlay::kHelp);
  EXPECT_EQ(down.overlay_line, 2U);
  EXPECT_EQ(press(down, named(Key::Kind::kUp)).overlay_line, 1U);
  EXPECT_EQ(press(down, named(Key::Kind::kEnd)).overlay_line, 5U);
  EXPECT_EQ(press(down, named(Key::Kind::kPageUp)).overlay_line, 0U);
  EXPECT_EQ(press(down, named(Key::Kind::kWheelDown)).overlay_line, 5U);
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

TEST(Keys, LeftAndRightMoveACursorByAColumn) {
  EXPECT_EQ(after({}, {named(Key::Kind::kRight)}), ViewState{}) << "now is now";
  EXPECT_EQ(after({}, {named(Key::Kind::kLeft)}).cursor_s, 3590.0);
  EXPECT_EQ(after({}, {letter("h"), letter("h"), letter("l")}).cursor_s, 3590.0);
  EXPECT_EQ(after({}, {letter("h"), letter("l"), letter("l")}).cursor_s, 3600.0) << "no farther";
  EXPECT_EQ(after({}, {letter("h"), named(Key::Kind::kEscape)}), ViewState{});
  EXPECT_EQ(apply_key({}, letter("h"), Scene{}).state, ViewState{}) << "there is no run yet";
}

TEST(Keys, AWindowWithACursorStaysWhereItIsAndFollowsTheCursor) {
  ViewState zoomed;
  zoomed.zoom = Zoom::kTenMinutes;

  const ViewState placed = after(zoomed, {named(Key::Kind::kLeft)});
  EXPECT_DOUBLE_EQ(placed.back_s, 10.0);

  ViewState at_the_edge = placed;
  at_the_edge.cursor_s = 3000.0;
  EXPECT_DOUBLE_EQ(after(at_the_edge, {named(Key::Kind::kLeft)}).back_s, 160.0);
}

TEST(Keys, ZoomKeepsTheCursorInSight) {
  ViewState state;
  state.cursor_s = 1800.0;

  EXPECT_DOUBLE_EQ(after(state, {letter("z")}).back_s, 3600.0 - 1830.0);
  state.cursor_s = 5.0;
  EXPECT_DOUBLE_EQ(after(state, {letter("z")}).back_s, 3540.0) << "not before the run";
}

TEST(Keys, PagesAndEndsScrollTheTimeline) {
  const ViewState timeline = after({}, {named(Key::Kind::kTab)});
  EXPECT_DOUBLE_EQ(after(timeline, {named(Key::Kind::kHome)}).back_s, 3000.0);
  EXPECT_DOUBLE_EQ(after(timeline, {named(Key::Kind::kHome), named(Key::Kind::kEnd)}).back_s, 0.0);
  EXPECT_DOUBLE_EQ(after(timeline, {named(Key::Kind::kPageUp)}).back_s, 600.0);
}

TEST(Keys, TheAxisGoesRoundAndHasNoLimitWhereNoneIsKnown) {
  EXPECT_EQ(after({}, {letter("a")}).range, PlotRange::kFromZero);
  EXPECT_EQ(after({}, {letter("a"), letter("a")}).range, PlotRange::kToLimit);
  EXPECT_EQ(after({}, {letter("a"), letter("a"), letter("a")}).range, PlotRange::kFit);
  ViewState from_zero;
  from_zero.range = PlotRange::kFromZero;

  EXPECT_EQ(apply_key(from_zero, letter("a"), Scene{}).state.range, PlotRange::kFit);
}

TEST(Keys, WhyOpensTheReasonsAndAnyKeyClosesThem) {
  const ViewState open = after({}, {letter("w")});
  EXPECT_EQ(open.overlay, Overlay::kReasons);
  EXPECT_EQ(after(open, {letter("x")}), ViewState{});
}

TEST(Signals, AreSentAfterAChoiceAndAYes) {
  const ViewState asked = after({}, {letter("K")});
  EXPECT_EQ(asked.overlay, Overlay::kSignal);
  EXPECT_EQ(asked.asked_about, kTrainerRow.key);

  for (const auto& [key, number] : {std::pair("t", SIGTERM), std::pair("k", SIGKILL),
                                    std::pair("s", SIGSTOP), std::pair("c", SIGCONT)}) {
    const Outcome chosen = apply_key(asked, letter(key), scene());
    EXPECT_EQ(chosen.command, Command::kNone) << key;
    EXPECT_EQ(chosen.state.signal_number, number);

    const Outcome sent = apply_key(chosen.state, letter("y"), scene());
    EXPECT_EQ(sent.command, Command::kSignal);
    EXPECT_EQ(sent.signal, (SignalRequest{kTrainerRow.key, number}));
    EXPECT_EQ(sent.state.overlay, Overlay::kNone);
  }
}

TEST(Signals, AreNotSentByAnyOtherKey) {
  const ViewState asked = after({}, {letter("K")});
  const ViewState chosen = after(asked, {letter("t")});

  for (const Key& key : {letter("n"), letter("q"), letter("t"), letter("Y"),
                         named(Key::Kind::kEnter), named(Key::Kind::kEscape)}) {
    const Outcome outcome = apply_key(chosen, key, scene());
    EXPECT_EQ(outcome.command, Command::kNone) << key.text;
    EXPECT_EQ(outcome.state.overlay, Overlay::kNone);
    EXPECT_FALSE(outcome.state.signal_number);
  }
  EXPECT_EQ(apply_key(asked, letter("y"), scene()).command, Command::kNone) << "nothing is chosen";
}

TEST(Signals, AreForAProcessAndForWhatRuns) {
  const Outcome of_role = apply_key(after({}, {letter("j")}), letter("K"), scene());
  EXPECT_EQ(of_role.command, Command::kNeedProcess);
  EXPECT_EQ(of_role.state.overlay, Overlay::kNone);

  Scene replay = scene();
  replay.can_signal = false;
  EXPECT_EQ(apply_key({}, letter("K"), replay).state, ViewState{});
}

TEST(Signals, SayWhatBecameOfThem) {
  EXPECT_EQ(signal_outcome(SIGTERM, "trainer 110", 0), "sent TERM to trainer 110");
  EXPECT_EQ(signal_outcome(SIGKILL, "trainer 110", ESRCH),
            "trainer 110 has exited: nothing was sent");
  EXPECT_EQ(signal_outcome(SIGSTOP, "trainer 110", EPERM),
            "nothing was sent: trainer 110 belongs to another user");
}

TEST(Attaching, TakesAYes) {
  const ViewState asked = after({}, {letter("A")});
  EXPECT_EQ(asked.overlay, Overlay::kAttach);
  EXPECT_EQ(asked.asked_about, kTrainerRow.key);

  const Outcome meant = apply_key(asked, letter("y"), scene());
  EXPECT_EQ(meant.command, Command::kAttach);
  EXPECT_EQ(meant.attach_to, kTrainerRow.key);
  EXPECT_EQ(meant.state.overlay, Overlay::kNone);
  for (const Key& key : {letter("n"), letter("q"), letter("A"), letter("Y"),
                         named(Key::Kind::kEnter), named(Key::Kind::kEscape)}) {
    const Outcome outcome = apply_key(asked, key, scene());
    EXPECT_EQ(outcome.command, Command::kNone) << key.text;
    EXPECT_EQ(outcome.state.overlay, Overlay::kNone);
  }
}

TEST(Attaching, IsToOneProcessAtATime) {
  EXPECT_EQ(apply_key({}, letter("D"), scene()).command, Command::kNone);
  Scene attached = scene();
  attached.is_attached = true;

  const Outcome second = apply_key({}, letter("A"), attached);
  EXPECT_EQ(second.command, Command::kNeedDetach);
  EXPECT_EQ(second.state.overlay, Overlay::kNone);
  EXPECT_EQ(apply_key({}, letter("D"), attached).command, Command::kDetach);
}

TEST(Attaching, IsForAProcessAndForWhatRuns) {
  EXPECT_EQ(apply_key(after({}, {letter("j")}), letter("A"), scene()).command,
            Command::kNeedProcess);
  Scene replay = scene();
  replay.can_signal = false;
  EXPECT_EQ(apply_key({}, letter("A"), replay).state, ViewState{});
}

TEST(Keys, ZoomGoesRoundAndTheWholeRunHasNoPlaceToScrollTo) {
  EXPECT_EQ(after({}, {letter("z")}).zoom, Zoom::kMinute);
  EXPECT_EQ(after({}, {letter("z"), letter("z")}).zoom, Zoom::kTenMinutes);
  EXPECT_EQ(after({}, {letter("z"), letter("z"), letter("z")}).zoom, Zoom::kHour);
  ViewState scrolled;
  scrolled.zoom = Zoom::kMinute;
  scrolled.back_s = 60.0;
  const ViewState all = after(scrolled, {letter("z"), letter("z"), letter("z")});
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
  ViewState scrolled;
  scrolled.zoom = Zoom::kMinute;
  scrolled.back_s = 60.0;
  EXPECT_DOUBLE_EQ(after(scrolled, {named(Key::Kind::kEscape)}).back_s, 0.0);
}

TEST(Mouse, SelectsARowAndOpensARoleOnTheSecondPress) {
  const Key press{Key::Kind::kMousePress, {}, 5, 21};
  EXPECT_EQ(after({}, {press}).selected, kWorkersRow);

  EXPECT_TRUE(after({}, {press, press}).flipped.contains(Role::kCompileWorker));
}

TEST(Mouse, GivesTheTimelineTheFocusAndTheWheelScrollsWhatIsBelowIt) {
  EXPECT_EQ(after({}, {{Key::Kind::kMousePress, {}, 5, 4}}).focus, Focus::kTimeline);
  EXPECT_EQ(after({}, {{Key::Kind::kMousePress, {}, 10, 4}}).cursor_s, 3005.0);
  EXPECT_DOUBLE_EQ(after({}, {{Key::Kind::kWheelUp, {}, 5, 4}}).back_s, 150.0);
  EXPECT_EQ(after({}, {{Key::Kind::kWheelDown, {}, 5, 21}}).selected, kWorkerRow);
  EXPECT_EQ(after({}, {{Key::Kind::kMousePress, {}, 5, 500}}), ViewState{});
}

}  // namespace
}  // namespace tidemark::dashboard
