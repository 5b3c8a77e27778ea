// SPDX-License-Identifier: Apache-2.0
#include "dashboard/model_builder.h"

#include <signal.h>

#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/units.h"
#include "tests/unit/dashboard/sample_dashboard.h"

namespace tidemark::dashboard {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using tests::kTrainer;
using tests::sample_dashboard;

TEST(Banner, SaysWhoIsWatchedAndWhyNotTheWrapper) {
  const BannerModel banner = sample_dashboard().banner;

  EXPECT_EQ(banner.watched, "trainer, pid 110 (train.py)");
  EXPECT_EQ(banner.because, "not the wrapper 100 (uv) above it");
  EXPECT_EQ(banner.clock, "00:04:00");
  EXPECT_EQ(banner.progress, "step 1200, epoch 4");
}

TEST(Banner, NamesTheNearestOfManyWrappers) {
  RunHistory history;
  Tick tick = tests::dashboard_tick(0, 0);
  tick.processes.push_back(tests::sample_of({90, 1}, 1));
  tick.new_processes.push_back(tests::record_of({90, 1}, 1, Role::kLauncher, "torchrun x"));
  tick.new_processes[0].ppid = 90;
  history.add(tick, kTrainer);

  EXPECT_EQ(build_banner(history, std::nullopt).because,
            "not the wrapper 100 (uv) and 1 more above it");
}

TEST(Banner, GivesTheVerdictWithItsRate) {
  const BannerModel banner = sample_dashboard().banner;

  EXPECT_EQ(banner.word, "LEAK");
  EXPECT_EQ(banner.tone, Tone::kBad);
  EXPECT_GT(banner.confidence.value(), 0.9);
  EXPECT_THAT(banner.finding, HasSubstr("/step"));
  EXPECT_THAT(banner.finding, HasSubstr("/min"));
  EXPECT_THAT(banner.outlook, HasSubstr("limit 32.0 GiB in "));
}

TEST(Banner, IsHonestBeforeTheFirstSampleAndBeforeTheFirstVerdict) {
  RunHistory history;
  EXPECT_EQ(build_banner(history, std::nullopt).word, "WAITING");
  history.add(tests::dashboard_tick(0), kTrainer);

  EXPECT_EQ(build_banner(history, std::nullopt).word, "TOO EARLY");
}

TEST(Banner, EndsWithTheNextCommand) {
  const tests::SampleRun run = tests::sample_dashboard_run(240);
  const auto next = [&](const ScreenInputs& inputs) {
    return build_model(run.history, run.judged, {}, inputs).banner.next;
  };
  ScreenInputs inputs;
  inputs.target.running = "--find-training";
  EXPECT_THAT(next(inputs), HasSubstr("--find-training"));
  inputs.target = {"", "python train.py"};
  EXPECT_THAT(next(inputs), HasSubstr("--pid 110")) << "the command runs";
  inputs.has_ended = true;
  EXPECT_THAT(next(inputs), HasSubstr("-- python train.py"));
}

SystemSample machine_sample() {
  SystemSample system;
  system.total_bytes = 32 * kGiB;
  system.available_bytes = 24 * kGiB;
  system.swap_total_bytes = 4 * kGiB;
  system.swap_free_bytes = 3 * kGiB;
  system.psi_some_avg10 = 3.0;
  system.psi_full_avg10 = 0.0;
  system.dev_shm_bytes = 64 * kMiB;
  return system;
}

TEST(Machine, ShowsUsedAvailableSwapPressureAndShm) {
  const MachineModel machine = build_machine(machine_sample());

  EXPECT_THAT(
      machine.figures,
      testing::ElementsAre("used 8.00 GiB of 32.0 GiB", "available 24.0 GiB", "pressure 3 %",
                           "swap 1.00 GiB of 4.00 GiB", "/dev/shm 64.0 MiB"));
  EXPECT_DOUBLE_EQ(machine.used_share.value(), 0.25);
  EXPECT_EQ(machine.tone, Tone::kUnknown);
}

TEST(Machine, ShowsTheControlGroupThatBoundsTheJob) {
  SystemSample system = machine_sample();
  system.cgroup_used_bytes = 7'900 * kMiB;
  system.cgroup_limit_bytes = 8 * kGiB;
  system.cgroup_psi_some_avg10 = 40.0;

  const MachineModel machine = build_machine(system);

  EXPECT_THAT(machine.figures, Contains("cgroup 7.71 GiB of 8.00 GiB, its pressure 40 %"));
  EXPECT_EQ(machine.tone, Tone::kBad) << "the machine has room, the job has none";
}

TEST(Machine, SaysWhenLittleIsLeft) {
  SystemSample system = machine_sample();
  system.available_bytes = 3 * kGiB;
  EXPECT_EQ(build_machine(system).tone, Tone::kWatch);
  system.available_bytes = 1 * kGiB;
  EXPECT_EQ(build_machine(system).tone, Tone::kBad);
  system = machine_sample();
  system.psi_some_avg10 = 12.0;
  EXPECT_EQ(build_machine(system).tone, Tone::kWatch);
  system.psi_full_avg10 = 11.0;
  EXPECT_EQ(build_machine(system).tone, Tone::kBad);
  EXPECT_THAT(build_machine(system).figures, Contains("pressure 12 % (all stopped 11 %)"));
}

TEST(Machine, ShowsNothingThatIsNotKnown) {
  EXPECT_THAT(build_machine(std::nullopt).figures, IsEmpty());
  EXPECT_THAT(build_machine(SystemSample{}).figures, IsEmpty());
  SystemSample system = machine_sample();
  system.swap_total_bytes = 0;
  system.swap_free_bytes = 0;
  system.dev_shm_unheld_bytes = 5 * kMiB;
  EXPECT_THAT(build_machine(system).figures, Contains("no swap"));
  EXPECT_THAT(build_machine(system).figures,
              Contains("/dev/shm 64.0 MiB, 5.00 MiB held by nobody"));
}

TEST(Machine, IsAsItWasWhenItWasLastRead) {
  RunHistory history;
  Tick tick = tests::dashboard_tick(0);
  tick.system = machine_sample();
  history.add(tick, kTrainer);
  history.add(tests::dashboard_tick(1), kTrainer);

  EXPECT_THAT(build_model(history, {}, {}, {}).machine.figures, Contains("available 24.0 GiB"));
}

// The 240 s of the run in 240 columns: a second each.
TimelineModel timeline_at(double cursor_s, const ViewState& choice = {}) {
  ViewState state = choice;
  state.cursor_s = cursor_s;
  ScreenInputs inputs;
  inputs.plot_columns = 240;
  return sample_dashboard(state, inputs).timeline;
}

TEST(Cursor, ShowsTheFiguresOfItsMoment) {
  const TimelineModel timeline = timeline_at(122.0);

  ASSERT_GE(timeline.at_cursor.size(), 4U);
  EXPECT_EQ(timeline.at_cursor[0], "00:02:02");
  EXPECT_EQ(timeline.at_cursor[1], "tree 523 MiB");
  EXPECT_EQ(timeline.at_cursor[2], "step 610");
  EXPECT_THAT(timeline.at_cursor[3], testing::StartsWith("trainer 110 42"));
  EXPECT_THAT(timeline.at_cursor, Contains(testing::StartsWith("floor ")));
  EXPECT_THAT(timeline.at_cursor, Not(Contains(HasSubstr("spike"))));
}

TEST(Cursor, ShowsASpikeAndWhatHappened) {
  EXPECT_THAT(timeline_at(125.0).at_cursor, Contains(testing::StartsWith("spike of ")));
  EXPECT_THAT(timeline_at(120.0).at_cursor, Contains("epoch 2"));
}

TEST(Cursor, StandsForAllSamplesOfItsColumn) {
  ViewState state;
  state.cursor_s = 125.0;
  ScreenInputs inputs;
  inputs.plot_columns = 24;  // 10 s each

  EXPECT_EQ(sample_dashboard(state, inputs).timeline.at_cursor.at(1), "tree 521 MiB to 590 MiB");
}

TEST(Cursor, AtTheRightEdgeShowsTheNewestSample) {
  EXPECT_EQ(timeline_at(240.0).at_cursor.at(1), "tree 640 MiB to 641 MiB");
}

TEST(Cursor, OutsideOfTheWindowIsNotShown) {
  ViewState last_minute;
  last_minute.zoom = Zoom::kMinute;

  EXPECT_FALSE(timeline_at(100.0, last_minute).cursor_s);
  EXPECT_THAT(timeline_at(100.0, last_minute).at_cursor, IsEmpty());
}

TEST(Cursor, OnAProcessThatStartedLaterSaysSo) {
  tests::SampleRun run = tests::sample_dashboard_run(100);
  Tick tick = tests::dashboard_tick(101);
  tick.processes.push_back(tests::sample_of({300, 9}, 5));
  tick.new_processes.push_back(tests::record_of({300, 9}, 110, Role::kDataloaderWorker, "python3"));
  run.history.add(tick, kTrainer);
  ViewState state;
  state.selected = RowId{Role::kDataloaderWorker, {300, 9}};
  state.cursor_s = 50.0;

  const DashboardModel model = build_model(run.history, run.judged, state, {});

  EXPECT_THAT(model.timeline.at_cursor, Contains("dataloader_worker 300 not started yet"));
}

TEST(Reasons, HaveTheSentenceTheEvidenceAndTheNextCommand) {
  ViewState state;
  state.overlay = Overlay::kReasons;
  ScreenInputs inputs;
  inputs.target.running = "--pid 110";

  const std::string words = tests::words_of(sample_dashboard(state, inputs).overlay);

  EXPECT_THAT(words, HasSubstr("leak"));
  EXPECT_THAT(words, HasSubstr("found    leak"));
  EXPECT_THAT(words, HasSubstr("because  "));
  EXPECT_THAT(words, testing::ContainsRegex("next     tidemark [a-z]+ --pid 110"));
}

TEST(Reasons, HaveTheAdvice) {
  tests::SampleRun run = tests::sample_dashboard_run(240);
  run.judged->verdict->advice = {{"id", "this was seen", "this may be why", "this helps"}};
  ViewState state;
  state.overlay = Overlay::kReasons;

  const std::string words =
      tests::words_of(build_model(run.history, run.judged, state, {}).overlay);

  EXPECT_THAT(words, HasSubstr("seen     this was seen"));
  EXPECT_THAT(words, HasSubstr("likely   this may be why"));
  EXPECT_THAT(words, HasSubstr("do       this helps"));
}

TEST(Reasons, SayThatThereIsNoVerdictYet) {
  RunHistory history;
  ViewState state;
  state.overlay = Overlay::kReasons;

  EXPECT_THAT(tests::words_of(build_model(history, {}, state, {}).overlay),
              HasSubstr("no verdict yet"));
}

TEST(Help, ExplainsTheWordsOnTheScreen) {
  ViewState state;
  state.overlay = Overlay::kHelp;
  const std::string words = tests::words_of(sample_dashboard(state).overlay);

  for (const char* word : {"\nfootprint ", "\nRSS ", "\nPSS ", "\nfloor ", "\nspike ", "\nrate ",
                           "\npressure ", "\n/dev/shm "}) {
    EXPECT_THAT(words, HasSubstr(word));
  }
}

TEST(Help, HasOnlyKeysThatDoSomething) {
  ViewState state;
  state.overlay = Overlay::kHelp;
  ScreenInputs inputs;
  EXPECT_THAT(tests::words_of(sample_dashboard(state, inputs).overlay), Not(HasSubstr("\nK ")));
  EXPECT_THAT(tests::words_of(sample_dashboard(state, inputs).overlay), Not(HasSubstr("\nA ")));
  EXPECT_THAT(sample_dashboard(state, inputs).status.keys,
              testing::AllOf(Not(Contains("K signal")), Not(Contains("A attach"))));
  inputs.can_signal = true;

  EXPECT_THAT(tests::words_of(sample_dashboard(state, inputs).overlay), HasSubstr("\nK "));
  EXPECT_THAT(tests::words_of(sample_dashboard(state, inputs).overlay),
              testing::AllOf(HasSubstr("\nA "), HasSubstr("\nD ")));
  EXPECT_THAT(sample_dashboard(state, inputs).status.keys,
              testing::AllOf(Contains("K signal"), Contains("A attach")));
}

TEST(AttachQuestion, NamesTheProcessAndHowItEnds) {
  ViewState state;
  state.overlay = Overlay::kAttach;
  state.asked_about = kTrainer;

  EXPECT_THAT(tests::words_of(sample_dashboard(state).overlay),
              testing::AllOf(HasSubstr("Attach to trainer 110 (python3 train.py --epochs 3)?"),
                             HasSubstr("until you press D or quit"), HasSubstr("y attaches")));
}

TEST(Status, SaysThatItIsAttachedAndHowToEndIt) {
  ScreenInputs inputs;
  inputs.can_signal = true;
  EXPECT_EQ(sample_dashboard({}, inputs).status.state, "");
  inputs.is_attached = true;

  const StatusModel status = sample_dashboard({}, inputs).status;

  EXPECT_EQ(status.state, "ATTACHED");
  EXPECT_THAT(status.keys, testing::AllOf(Contains("D detach"), Not(Contains("A attach"))));
}

TEST(SignalQuestion, NamesTheProcessAndThenTheSignal) {
  ViewState state;
  state.overlay = Overlay::kSignal;
  state.asked_about = kTrainer;
  EXPECT_THAT(
      tests::words_of(sample_dashboard(state).overlay),
      testing::AllOf(HasSubstr("Which signal to trainer 110 (python3 train.py --epochs 3)?"),
                     HasSubstr("t  TERM  asks it to end"), HasSubstr("k  KILL")));

  state.signal_number = SIGKILL;
  EXPECT_THAT(tests::words_of(sample_dashboard(state).overlay),
              testing::AllOf(HasSubstr("Send KILL to trainer 110 (python3 train.py --epochs 3)?"),
                             HasSubstr("y sends it")));
  state.asked_about = {999, 9};
  EXPECT_THAT(tests::words_of(sample_dashboard(state).overlay),
              HasSubstr("process 999, which has exited"));
}

TEST(Tree, ClosesRolesWithManyProcessesAndKeepsTheTrainerInSight) {
  const TreeModel tree = sample_dashboard().tree;

  ASSERT_THAT(tree.rows, SizeIs(3));
  EXPECT_EQ(tree.rows[0].name, "trainer 110");
  EXPECT_EQ(tree.rows[1].name, "compile_worker x20");
  EXPECT_FALSE(tree.rows[1].is_open);
  EXPECT_EQ(tree.rows[1].footprint_bytes, 100 * kMiB);
  EXPECT_EQ(tree.rows[0].change_bytes, 240 * static_cast<std::int64_t>(kMiB));
  EXPECT_EQ(tree.selected, 0U);
}

TEST(Tree, SelectsTheTrainerAtFirstWhereverItStands) {
  ViewState state;
  state.sort = SortBy::kPid;

  const TreeModel tree = sample_dashboard(state).tree;

  EXPECT_EQ(tree.rows[0].name, "wrapper 100");
  EXPECT_EQ(tree.rows[tree.selected].name, "trainer 110");
}

TEST(Tree, OpensAFlippedRole) {
  ViewState state;
  state.flipped.insert(Role::kCompileWorker);

  EXPECT_THAT(sample_dashboard(state).tree.rows, SizeIs(23));
}

TEST(Tree, FilterFindsNamesPidsAndCommandsWhateverTheCase) {
  const auto rows_with = [](const std::string& filter) {
    ViewState state;
    state.filter = filter;
    return sample_dashboard(state).tree.rows.size();
  };

  EXPECT_EQ(rows_with("Compile_Worker"), 21U);
  EXPECT_EQ(rows_with("219"), 1U);
  EXPECT_EQ(rows_with("EPOCHS"), 1U);
  EXPECT_EQ(rows_with("nothing like it"), 0U);
}

TEST(Tree, AProcessThatHasGoneLeavesItsRoleSelected) {
  ViewState state;
  state.selected = RowId{Role::kCompileWorker, {999, 9}};

  const TreeModel tree = sample_dashboard(state).tree;

  EXPECT_EQ(tree.rows[tree.selected].name, "compile_worker x20");
}

TEST(Tree, AddsUpTheMemoryOnAllGpus) {
  RunHistory history;
  Tick tick = tests::dashboard_tick(0);
  tick.gpus.resize(2);
  tick.gpus[0].processes = {{110, 2 * kMiB}};
  tick.gpus[1].processes = {{110, 3 * kMiB}};
  history.add(tick, kTrainer);

  const DashboardModel model = build_model(history, std::nullopt, {}, {});

  EXPECT_TRUE(model.tree.shows_gpu);
  EXPECT_EQ(model.tree.rows[0].gpu_bytes, 5 * kMiB);
  EXPECT_THAT(model.gpus, SizeIs(2));
  EXPECT_EQ(model.gpus[0].processes, "trainer 110 2.00 MiB");
}

TEST(Gpus, NameTheLargestUsersAndCountTheRest) {
  RunHistory history;
  Tick tick = tests::dashboard_tick(0);
  GpuSample gpu;
  gpu.index = mig_index(0, 2);
  gpu.name = "H\x1b[2J";
  for (pid_t pid = 200; pid < 206; ++pid) {
    gpu.processes.push_back({pid, static_cast<std::uint64_t>(pid) * kMiB});
  }
  gpu.busy_percent = 9;
  gpu.age_s = 3.0;
  tick.gpus = {gpu};
  history.add(tick, kTrainer);

  const GpuModel model = build_model(history, std::nullopt, {}, {}).gpus.at(0);

  EXPECT_EQ(model.name, "gpu0.2 H\\x1b[2J");
  EXPECT_EQ(model.processes,
            "compile_worker 205 205 MiB, compile_worker 204 204 MiB, compile_worker 203 203 MiB, "
            "compile_worker 202 202 MiB, 2 more");
  EXPECT_EQ(model.busy_percent, 9U);
  EXPECT_EQ(model.age_s, 3.0);
}

// The curve, its floor and its limit are of one metric.
TEST(Timeline, DrawsTheGpuWhereThatIsJudged) {
  RunHistory history;
  LiveJudge judge;
  history.begin(tests::dashboard_info());
  judge.begin(tests::dashboard_info());
  for (int second = 0; second <= 120; ++second) {
    Tick tick = tests::dashboard_tick(second);
    GpuSample gpu;
    gpu.used_bytes = gpu.total_bytes = 4096 * kMiB;
    gpu.processes = {{110, static_cast<std::uint64_t>(2000 + second) * kMiB}};
    tick.gpus = {gpu};
    history.add(tick, kTrainer);
    judge.add(tick);
  }
  tracker::JudgeOptions judging;
  judging.metric = tracker::Metric::kGpu;

  const DashboardModel model =
      build_model(history, tracker::judge_run(judge.tracks(), judging), {}, {});

  EXPECT_THAT(model.timeline.title, HasSubstr("GPU memory of the tree"));
  ASSERT_FALSE(model.timeline.points.empty());
  EXPECT_EQ(model.timeline.points.back().max_bytes, 2120.0 * kMiB);
  ASSERT_TRUE(model.timeline.limit_bytes);
  EXPECT_EQ(*model.timeline.limit_bytes, 2120.0 * kMiB) << "the rest is in other hands";
  EXPECT_THAT(model.banner.whose, HasSubstr("GPU memory of "));
}

// A cell of a week's curve is longer than a minute.
TEST(Timeline, OfAnotherCurveHasNoEmptyWindows) {
  RunHistory history;
  LiveJudge judge;
  for (int i = 0; i <= 100; ++i) {
    Tick tick = tests::dashboard_tick(0);
    tick.t_s = 100.0 * i;
    tick.tree.pss_bytes = static_cast<std::uint64_t>(100 + i) * kMiB;
    history.add(tick, kTrainer);
    judge.add(tick);
  }
  tracker::JudgeOptions judging;
  judging.metric = tracker::Metric::kPss;
  ViewState state;
  state.zoom = Zoom::kMinute;
  state.back_s = 30.0;

  const TimelineModel timeline =
      build_model(history, tracker::judge_run(judge.tracks(), judging), state, {}).timeline;

  EXPECT_THAT(timeline.title, testing::StartsWith("pss of the tree"));
  ASSERT_THAT(timeline.points, SizeIs(2));
  EXPECT_EQ(timeline.points[0].t_s, timeline.from_s);
  EXPECT_EQ(timeline.points[1].t_s, timeline.to_s);
  EXPECT_EQ(timeline.points[0].max_bytes, 199.0 * kMiB);
}

TEST(Tree, AddsUpTheCpuOfARoleWhenAllOfItsProcessesWereLookedAt) {
  ScreenInputs around;
  for (int i = 0; i < tests::kWorkers; ++i) {
    around.cpu[{tests::kFirstWorker + i, 3}] = 0.05;
  }
  EXPECT_NEAR(sample_dashboard({}, around).tree.rows[1].cpu_share.value(), 1.0, 1e-9);
  around.cpu.erase({tests::kFirstWorker, 3});

  EXPECT_EQ(sample_dashboard({}, around).tree.rows[1].cpu_share, std::nullopt);
}

TEST(Tree, AFilterChangesNoFigureOfARole) {
  ScreenInputs around;
  for (int i = 0; i < tests::kWorkers; ++i) {
    around.cpu[{tests::kFirstWorker + i, 3}] = 0.05;
  }
  ViewState state;
  state.filter = "compile_worker 21";  // 210 to 219

  const TreeModel tree = sample_dashboard(state, around).tree;

  ASSERT_THAT(tree.rows, SizeIs(11));
  EXPECT_EQ(tree.rows[0].name, "compile_worker x20");
  EXPECT_EQ(tree.rows[0].footprint_bytes, 100 * kMiB);
  EXPECT_NEAR(tree.rows[0].cpu_share.value(), 1.0, 1e-9);
}

TEST(Timeline, KnowsTheStepsAtItsEnds) {
  ViewState state;
  state.zoom = Zoom::kMinute;

  const TimelineModel timeline = sample_dashboard(state).timeline;

  EXPECT_EQ(timeline.from_step, 900);
  EXPECT_EQ(timeline.to_step, 1200);
}

TEST(Timeline, ShowsTheWholeRunOrAWindowOfIt) {
  ViewState state;
  EXPECT_DOUBLE_EQ(sample_dashboard(state).timeline.from_s, 0.0);
  state.zoom = Zoom::kMinute;
  state.back_s = 60.0;

  const TimelineModel timeline = sample_dashboard(state).timeline;

  EXPECT_DOUBLE_EQ(timeline.from_s, 120.0);
  EXPECT_DOUBLE_EQ(timeline.to_s, 180.0);
  EXPECT_THAT(timeline.points, SizeIs(61));
  EXPECT_THAT(timeline.title, HasSubstr("1 min until 00:03:00"));
  EXPECT_THAT(timeline.floor, Not(IsEmpty()));
}

TEST(Timeline, HasMarksAndPhases) {
  const TimelineModel timeline = sample_dashboard().timeline;

  EXPECT_THAT(timeline.marks, Contains(testing::Field(&TimelineMark::letter, 'W')));
  EXPECT_THAT(timeline.marks, Contains(testing::Field(&TimelineMark::letter, 'E')));
  EXPECT_THAT(timeline.phases, SizeIs(9));
}

TEST(Timeline, PrefersWhatTheRunFileHas) {
  ScreenInputs around;
  around.recorded = {{1.0, 2.0, 3.0}};

  EXPECT_THAT(sample_dashboard({}, around).timeline.points, SizeIs(1));
}

TEST(Detail, SplitsTheMemoryOfAProcessAndJudgesIt) {
  const auto detail = sample_dashboard().detail;

  ASSERT_TRUE(detail);
  EXPECT_EQ(detail->title, "trainer 110");
  EXPECT_THAT(detail->lines, Contains(HasSubstr("verdict LEAK")));
  EXPECT_THAT(detail->lines, Contains(HasSubstr("anon 540 MiB, file 50.0 MiB")));
  EXPECT_THAT(detail->lines, Contains(HasSubstr("12 threads")));
  EXPECT_THAT(detail->lines, Contains(HasSubstr("limit 32.0 GiB (cgroup v2 /user.slice)")));
  EXPECT_THAT(detail->curve, Not(IsEmpty()));
}

// Live, the first sample is a moment after the start.
TEST(Detail, KnowsWhoWasThereFromTheBeginning) {
  RunHistory history;
  Tick tick = tests::dashboard_tick(0, 0);
  tick.t_s = 0.25;
  for (ProcessRecord& record : tick.new_processes) {
    record.started_s = 0.25;
  }
  history.add(tick, kTrainer);
  Tick later = tests::dashboard_tick(1, 1);
  later.new_processes = {tests::record_of({200, 3}, 110, Role::kCompileWorker, "python3")};
  later.new_processes[0].started_s = 1.0;
  history.add(later, kTrainer);
  ViewState state;
  const auto lines = [&] { return build_model(history, std::nullopt, state, {}).detail->lines; };

  EXPECT_THAT(lines(), Contains(HasSubstr("12 threads, in the first sample")));
  state.selected = RowId{Role::kCompileWorker, {200, 3}};
  EXPECT_THAT(lines(), Contains(HasSubstr("12 threads, started at 00:00:01")));
}

TEST(Detail, OfARoleSaysWhatIsShared) {
  ViewState state;
  state.selected = RowId{Role::kCompileWorker, {}};

  const auto detail = sample_dashboard(state).detail;

  ASSERT_TRUE(detail);
  EXPECT_THAT(detail->lines, Contains(HasSubstr("1.37 GiB rss, 100 MiB with shared pages")));
}

TEST(Model, EscapesNamesOfStrangers) {
  RunHistory history;
  Tick tick = tests::dashboard_tick(0, 0);
  tick.new_processes[1].argv = "evil\x1b[2J\xff";
  tick.new_processes[1].comm = "evil\x1b[2J";
  tick.markers.push_back({0.0, kTrainer, MarkerKind::kPhaseBegin, 0, "ph\x1b[2J"});
  history.add(tick, kTrainer);

  const DashboardModel model = build_model(history, std::nullopt, {}, {});

  EXPECT_EQ(model.tree.rows[0].command, "evil\\x1b[2J\\xff");
  EXPECT_THAT(model.banner.watched, HasSubstr("evil\\x1b[2J"));
  EXPECT_THAT(model.timeline.phases.back().name, HasSubstr("ph\\x1b"));
}

TEST(Model, TellsAKeyOnlyWhereItDoesSomething) {
  ScreenInputs around;
  EXPECT_THAT(sample_dashboard({}, around).status.keys, Not(Contains("m mark")));
  around.can_mark = true;

  EXPECT_THAT(sample_dashboard({}, around).status.keys, Contains("m mark"));
}

TEST(Model, SaysInWhichStateTheScreenIs) {
  ViewState paused;
  paused.is_paused = true;
  ScreenInputs ended;
  ended.has_ended = true;
  ScreenInputs replay;
  replay.replay_speed = 20.0;

  EXPECT_EQ(sample_dashboard(paused).status.state, "PAUSED");
  EXPECT_EQ(sample_dashboard({}, ended).status.state, "ENDED");
  EXPECT_EQ(sample_dashboard({}, replay).status.state, "REPLAY 20x");
  EXPECT_EQ(sample_dashboard(paused, replay).status.state, "REPLAY 20x STOPPED");
  EXPECT_EQ(sample_dashboard(paused, ended).status.state, "ENDED PAUSED") << "of an earlier moment";
  replay.has_ended = true;
  EXPECT_EQ(sample_dashboard(paused, replay).status.state, "REPLAY 20x ENDED");
}

class StepsOnly : public testing::Test {
 protected:
  DashboardModel model(const ViewState& state = {}) const {
    return build_model(run_.history, run_.judged, state, {});
  }

  const tests::SampleRun run_ = tests::steps_only_run(1200);
};

TEST_F(StepsOnly, HasNoClockAndNoPid) {
  const BannerModel banner = model().banner;

  EXPECT_EQ(banner.clock, "");
  EXPECT_EQ(banner.progress, "step 1200, epoch 1");
  EXPECT_EQ(banner.watched, "trainer");
  EXPECT_EQ(banner.because, "");
  EXPECT_EQ(banner.word, "LEAK");
  EXPECT_EQ(banner.whose, "trainer");
  EXPECT_THAT(banner.finding, HasSubstr("+1.00 MiB/step since step "));
  EXPECT_THAT(banner.finding, Not(HasSubstr("/min")));
}

TEST_F(StepsOnly, HasRatesPerStep) {
  const TreeModel tree = model().tree;

  EXPECT_TRUE(tree.rate_is_per_step);
  ASSERT_THAT(tree.rows, SizeIs(1));
  EXPECT_EQ(tree.rows[0].name, "trainer");
  EXPECT_EQ(tree.rows[0].command, "");
  EXPECT_EQ(tree.rows[0].footprint_bytes, std::nullopt);
  EXPECT_EQ(tree.rows[0].rss_bytes, 1500 * kMiB);
  EXPECT_NEAR(tree.rows[0].rate_bytes_per_s.value(), 1.0 * kMiB, 1.0);
}

TEST_F(StepsOnly, HasATimelineOfSteps) {
  const TimelineModel whole = model().timeline;
  EXPECT_TRUE(whole.time_is_steps);
  EXPECT_EQ(whole.title, "rss of the tree, the whole run");
  EXPECT_EQ(whole.last_event, "step 1199 epoch 1");
  EXPECT_THAT(whole.floor, Not(IsEmpty()));

  ViewState state;
  state.zoom = Zoom::kTenMinutes;
  EXPECT_EQ(model(state).timeline.title, "rss of the tree, last 600 steps");
  state.back_s = 100.0;
  EXPECT_EQ(model(state).timeline.title, "rss of the tree, 600 steps until step 1100");
  state.overlay = Overlay::kHelp;
  EXPECT_THAT(tests::words_of(model(state).overlay), HasSubstr("zoom: 60, 600, 3600 steps, all"));
}

TEST_F(StepsOnly, JudgesAProcessBySteps) {
  RunHistory history = run_.history;

  const auto detail = build_detail(history, std::nullopt, model().tree);

  ASSERT_TRUE(detail);
  EXPECT_EQ(detail->title, "trainer");
  EXPECT_THAT(detail->lines.at(0), HasSubstr("verdict LEAK: +1.00 MiB/step since step "));
  EXPECT_THAT(detail->lines.at(0), Not(HasSubstr("/min")));
  EXPECT_THAT(detail->lines, Contains("process in an unknown state, in the first sample"));
  EXPECT_THAT(detail->lines, Contains("command ?"));
}

// Whoever looks in the morning wants to know how the night went.
class AfterTheEnd : public testing::Test {
 protected:
  DashboardModel model_after(const std::vector<ProcessSample>& left) {
    tests::SampleRun run = tests::sample_dashboard_run(240);
    Tick last;
    last.t_s = 241.0;
    last.processes = left;
    run.history.add(last, {});
    return build_model(run.history, run.judged, {}, {});
  }
};

TEST_F(AfterTheEnd, KnowsWhoItWasAbout) {
  ProcessSample zombie;
  zombie.key = kTrainer;
  zombie.state = 'Z';
  for (const auto& left : {std::vector<ProcessSample>{}, std::vector<ProcessSample>{zombie}}) {
    const DashboardModel model = model_after(left);

    EXPECT_EQ(model.banner.watched, "trainer, pid 110 (train.py), until it ended");
    EXPECT_EQ(model.tree.processes, 22U);
    EXPECT_TRUE(model.tree.has_ended);
    ASSERT_THAT(model.tree.rows, SizeIs(3));
    EXPECT_EQ(model.tree.rows[0].footprint_bytes, 540 * kMiB);
    ASSERT_TRUE(model.detail);
    EXPECT_THAT(model.detail->lines, Contains(HasSubstr("process ended, parent 100")));
    EXPECT_EQ(model.timeline.points.back().max_bytes, 0.0) << "the curve goes on";
  }
}

TEST_F(AfterTheEnd, ForetellsNothing) {
  EXPECT_NE(sample_dashboard().banner.outlook, "");

  const DashboardModel model = model_after({});

  EXPECT_EQ(model.banner.word, "LEAK");
  EXPECT_EQ(model.banner.outlook, "");
}

TEST_F(AfterTheEnd, ForgetsThemWhenSomebodyElseComes) {
  RunHistory history;
  history.add(tests::dashboard_tick(0), kTrainer);
  Tick nobody;
  nobody.t_s = 1.0;
  history.add(nobody, {});
  ASSERT_TRUE(history.all_have_exited());
  Tick other;
  other.t_s = 2.0;
  other.processes = {tests::sample_of({900, 9}, 5)};
  history.add(other, {});

  EXPECT_FALSE(history.all_have_exited());
  EXPECT_THAT(history.processes(), SizeIs(1));
}

TEST(Tree, SortsByRssWhereNoFootprintIsKnown) {
  RunHistory history;
  Tick tick;
  for (std::uint64_t number = 1; number <= 3; ++number) {
    ProcessSample& sample = tick.processes.emplace_back();
    sample.key = {0, number};
    sample.rss_bytes = number * kMiB;
  }
  history.add(tick, {});

  const TreeModel tree = build_model(history, std::nullopt, {}, {}).tree;

  ASSERT_THAT(tree.rows, SizeIs(4));
  EXPECT_EQ(tree.rows[1].rss_bytes, 3 * kMiB);
  EXPECT_EQ(tree.rows[3].rss_bytes, 1 * kMiB);
}

}  // namespace
}  // namespace tidemark::dashboard
