// SPDX-License-Identifier: Apache-2.0
#include "tracker/causes/signature_facts.h"

#include <cmath>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "tests/unit/tracker/synthetic_run.h"
#include "tracker/run/run_verdict.h"

// From the curves of a whole run to the causes that are named: each run shows one signature, and
// nothing else may be named.
namespace tidemark::tracker {
namespace {

using tests::Actor;
using tests::flat;
using tests::kGB;
using tests::kMB;
using tests::ramp;
using tests::Shape;
using tests::SyntheticRun;
using tests::trainer;
using tests::worker;

constexpr double kHour = 3600.0;
using Ids = std::set<std::string>;

Actor gpu_trainer(Shape own) {
  Actor one = trainer(std::move(own));
  one.gpu = flat(10 * kGB);
  return one;
}

Actor compile_worker(double started_s, double exited_s = std::numeric_limits<double>::infinity()) {
  Actor one = worker(Role::kCompileWorker, flat(250 * kMB));
  one.once = flat(2 * kMB);
  one.started_s = started_s;
  one.exited_s = exited_s;
  return one;
}

Ids advised(const RunTracks& run) {
  Ids ids;
  const std::optional<RunVerdict> verdict = judge_run(run, Options{}, std::nullopt);
  if (verdict) {
    for (const Advice& advice : verdict->advice) {
      ids.emplace(advice.id);
    }
  }
  return ids;
}

SyntheticRun with_phases(SyntheticRun run, const std::string& name, double every_s,
                         double lasting_s, double length_s) {
  for (double t_s = every_s; t_s + lasting_s < length_s; t_s += every_s) {
    run.phase(name, t_s, t_s + lasting_s);
  }
  return run;
}

// A step of `height` in the middle of each phase of `lasting_s` seconds.
Shape stairs(double base, double height, double every_s, double lasting_s) {
  return [=](double t_s) {
    return base + height * std::max(std::floor((t_s - lasting_s / 2.0) / every_s), 0.0);
  };
}

Shape teeth(double base, double height, double every_s) {
  return [=](double t_s) { return base + height * std::fmod(t_s, every_s) / every_s; };
}

TEST(Signatures, NothingIsSaidOfAQuietRun) {
  EXPECT_EQ(advised(SyntheticRun(2 * kHour, 10.0).add(gpu_trainer(flat(8 * kGB))).play()), Ids{});
}

TEST(Signatures, FirstEpochCache) {
  RunTracks run = SyntheticRun(2 * kHour, 5.0)
                      .steps_per_s(0.2)
                      .add(gpu_trainer(ramp(4 * kGB, 17 * kGB, 20, 500)))
                      .play();
  EXPECT_EQ(advised(run), Ids{}) << "where no epoch is marked anything may have filled";

  run.epoch_steps = 100;
  EXPECT_EQ(advised(run), Ids{"first_epoch_cache"});
  run.epoch_steps = 700;
  EXPECT_EQ(advised(run), Ids{});
}

// The same curve, of blocks that were freed: only the tracer can tell.
TEST(Signatures, FreedButKept) {
  RunTracks run = SyntheticRun(2 * kHour, 5.0)
                      .steps_per_s(0.2)
                      .add(gpu_trainer(ramp(4 * kGB, 17 * kGB, 20, 500)))
                      .play();
  run.epoch_steps = 100;
  for (Track& track : run.tracks) {
    track.first_slack_bytes = 1 * kGB;
    track.last_slack_bytes = 2 * kGB;
  }
  EXPECT_EQ(advised(run), Ids{"first_epoch_cache"});

  for (Track& track : run.tracks) {
    track.last_slack_bytes = 13 * kGB;
  }
  EXPECT_EQ(advised(run), Ids{"freed_but_kept"});
}

TEST(Signatures, KeptPerStep) {
  const RunTracks run = SyntheticRun(3 * kHour, 10.0)
                            .steps_per_s(0.5)
                            .noise(80 * kMB)
                            .add(gpu_trainer(ramp(8 * kGB, 11 * kGB, 0, 3 * kHour)))
                            .play();

  EXPECT_EQ(advised(run), Ids{"kept_per_step"});
}

TEST(Signatures, Recompilation) {
  SyntheticRun script(3 * kHour, 10.0);
  script.steps_per_s(0.5).noise(80 * kMB).add(gpu_trainer(ramp(8 * kGB, 11 * kGB, 0, 3 * kHour)));
  script.add(compile_worker(0)).add(compile_worker(0));
  for (int burst = 1; burst < 9; ++burst) {
    script.add(8, compile_worker(burst * 1200.0, burst * 1200.0 + 100.0));
  }

  EXPECT_TRUE(advised(script.play()).contains("recompilation"));
  EXPECT_FALSE(advised(script.play()).contains("kept_per_step"));
}

TEST(Signatures, EvenGrowthBesideCompileWorkersIsKeptPerStep) {
  const RunTracks run = SyntheticRun(3 * kHour, 10.0)
                            .steps_per_s(0.5)
                            .noise(0.5 * kMB)
                            .add(gpu_trainer(ramp(8 * kGB, 11 * kGB, 0, 3 * kHour)))
                            .add(3, compile_worker(0))
                            .play();

  EXPECT_EQ(advised(run), Ids{"kept_per_step"});
}

TEST(Signatures, NoCauseOfGrowthThatOnlySlowsDown) {
  const RunTracks run =
      SyntheticRun(2 * kHour, 10.0)
          .add(worker(
              Role::kTrainer,
              [](double t_s) { return 4 * kGB + 3 * kGB * (1.0 - std::exp(-t_s / 3000.0)); }))
          .play();

  EXPECT_EQ(advised(run), Ids{});
}

TEST(Signatures, NoCacheInALineThatEnded) {
  const RunTracks run = SyntheticRun(2 * kHour, 10.0)
                            .add(worker(Role::kTrainer, ramp(4 * kGB, 7 * kGB, 0, 3000)))
                            .play();

  EXPECT_FALSE(advised(run).contains("primitive_cache"));
}

TEST(Signatures, NoSharedSegmentInAPoolThatComesLate) {
  const RunTracks run = SyntheticRun(2 * kHour, 10.0)
                            .add(gpu_trainer(flat(4 * kGB)))
                            .add(20, compile_worker(4000))
                            .play();

  EXPECT_EQ(advised(run), Ids{"compile_workers"});
}

TEST(Signatures, NoRecompilationWhileTheFirstGraphsAreBuilt) {
  SyntheticRun script(1200, 2.0);
  script.add(gpu_trainer(ramp(2 * kGB, 8 * kGB, 0, 1500))).add(3, compile_worker(0));
  for (double t_s = 30.0; t_s < 500.0; t_s += 40.0) {
    script.add(compile_worker(t_s, t_s + 20.0));
  }

  EXPECT_FALSE(advised(script.play()).contains("recompilation"));
}

TEST(Signatures, PinnedHostMemory) {
  Actor pinning = gpu_trainer(ramp(8 * kGB, 11 * kGB, 0, 3 * kHour));
  pinning.shmem = ramp(0.1 * kGB, 3.1 * kGB, 0, 3 * kHour);

  EXPECT_EQ(advised(SyntheticRun(3 * kHour, 10.0).add(pinning).play()), Ids{"pinned_host_memory"});
}

TEST(Signatures, FileSystemSharing) {
  Actor loader = worker(Role::kDataloaderWorker, ramp(0.5 * kGB, 1.5 * kGB, 0, 3 * kHour));
  loader.shmem = ramp(0.0, kGB, 0, 3 * kHour);
  const RunTracks run = SyntheticRun(3 * kHour, 10.0)
                            .add(gpu_trainer(flat(8 * kGB)))
                            .add(4, loader)
                            .add(6, worker(Role::kShmManager, flat(3 * kMB)))
                            .play();

  EXPECT_EQ(advised(run), Ids{"file_system_sharing"});
}

TEST(Signatures, CheckpointStateKept) {
  const RunTracks run =
      with_phases(
          SyntheticRun(4 * kHour, 10.0).add(gpu_trainer(stairs(8 * kGB, 0.5 * kGB, 1200, 60))),
          "checkpoint", 1200, 60, 4 * kHour)
          .play();

  EXPECT_EQ(advised(run), Ids{"checkpoint_state_kept"});
}

TEST(Signatures, CheckpointCycle) {
  const auto copies = [](double t_s) {
    return 8 * kGB + 2 * kGB * static_cast<double>(int((t_s - 20.0) / 600.0) % 4);
  };
  const RunTracks run = with_phases(SyntheticRun(4 * kHour, 10.0).add(gpu_trainer(copies)),
                                    "save_checkpoint", 600, 40, 4 * kHour)
                            .play();

  EXPECT_TRUE(advised(run).contains("checkpoint_cycle"));
  EXPECT_FALSE(advised(run).contains("checkpoint_state_kept"));
}

TEST(Signatures, FullStateDict) {
  const auto saving = [](double base, double height) {
    return [=](double t_s) {
      const double in_period = std::fmod(t_s, 900.0);
      return base + (t_s > 900.0 && in_period > 10.0 && in_period < 50.0 ? height : 0.0);
    };
  };
  Actor rank = worker(Role::kRank, saving(8 * kGB, 6 * kGB));
  rank.gpu = saving(20 * kGB, 5 * kGB);
  const RunTracks run =
      with_phases(SyntheticRun(4 * kHour, 5.0).add(2, rank), "checkpoint", 900, 60, 4 * kHour)
          .play();

  EXPECT_EQ(advised(run), Ids{"full_state_dict"});
}

TEST(Signatures, GraphKeptUntilEpochEnd) {
  RunTracks run = SyntheticRun(4 * kHour, 5.0)
                      .steps_per_s(1.0)
                      .add(gpu_trainer(teeth(6 * kGB, 3 * kGB, 900)))
                      .play();
  run.epoch_steps = 900;

  EXPECT_EQ(advised(run), Ids{"graph_kept_until_epoch_end"});
}

TEST(Signatures, CollectorSawtooth) {
  RunTracks run = SyntheticRun(4 * kHour, 5.0)
                      .steps_per_s(1.0)
                      .add(gpu_trainer(teeth(6 * kGB, 3 * kGB, 900)))
                      .play();
  run.epoch_steps = 5000;

  EXPECT_EQ(advised(run), Ids{"collector_sawtooth"});
}

TEST(Signatures, EvalOutputs) {
  const auto evaluating = [](double t_s) {
    const double into = std::fmod(t_s, 1200.0);
    return 6 * kGB + (t_s > 1200.0 && into < 100.0 ? into * 30 * kMB : 0.0);
  };
  const RunTracks run = with_phases(SyntheticRun(4 * kHour, 5.0).add(gpu_trainer(evaluating)),
                                    "eval", 1200, 100, 4 * kHour)
                            .play();

  EXPECT_EQ(advised(run), Ids{"eval_outputs"});
}

TEST(Signatures, EvalWorkersStay) {
  SyntheticRun script = with_phases(SyntheticRun(4 * kHour, 10.0).add(gpu_trainer(flat(6 * kGB))),
                                    "eval", 1200, 100, 4 * kHour);
  for (int i = 1; i < 12; ++i) {
    Actor loader = worker(Role::kDataloaderWorker, flat(300 * kMB));
    loader.started_s = i * 1200.0 + 10.0;
    script.add(2, loader);
  }

  EXPECT_EQ(advised(script.play()), Ids{"eval_workers_stay"});
}

TEST(Signatures, GrowthInsideAKindOfPhase) {
  for (const auto& [name, id] :
       {std::pair("log_metrics", "logging_lists"), std::pair("profiler", "profiler_buffers"),
        std::pair("tokenize", "tokenizer_cache"), std::pair("jit_trace", "repeated_export")}) {
    const RunTracks run =
        with_phases(
            SyntheticRun(4 * kHour, 10.0).add(gpu_trainer(stairs(6 * kGB, 0.4 * kGB, 600, 60))),
            name, 600, 60, 4 * kHour)
            .play();

    EXPECT_EQ(advised(run), Ids{id}) << name;
  }
}

TEST(Signatures, TokenizerProcess) {
  Actor tokenizer = worker(Role::kOther, ramp(0.5 * kGB, 3 * kGB, 0, 4 * kHour));
  tokenizer.comm = "tokenize_rows";
  const RunTracks run =
      SyntheticRun(4 * kHour, 10.0).add(gpu_trainer(flat(6 * kGB))).add(tokenizer).play();

  EXPECT_EQ(advised(run), Ids{"tokenizer_cache"});
}

TEST(Signatures, NoCauseOfAFewKilobytesPerStep) {
  const RunTracks run = SyntheticRun(8 * kHour, 10.0)
                            .steps_per_s(20.0)
                            .noise(0.1 * kMB)
                            .add(worker(Role::kTrainer, ramp(kGB, 1.5 * kGB, 0, 8 * kHour)))
                            .play();

  EXPECT_EQ(advised(run), Ids{});
}

// torch.compile starts one compiler after the other; whoever looks for a minute sees them come.
TEST(Signatures, ProcessesThatHaveJustComeAreNoPile) {
  SyntheticRun script(60.0, 1.0);
  script.add(gpu_trainer(flat(8 * kGB)));
  for (int i = 0; i < 8; ++i) {
    Actor compiler = worker(Role::kOther, flat(50 * kMB));
    compiler.started_s = 32.0 + 3.0 * i;
    script.add(compiler);
  }

  EXPECT_EQ(advised(script.play()), Ids{});
}

TEST(Signatures, OptimizerState) {
  RunTracks run = SyntheticRun(2 * kHour, 10.0)
                      .steps_per_s(0.05)
                      .add(gpu_trainer([](double t_s) { return t_s < 30.0 ? 4 * kGB : 9 * kGB; }))
                      .play();

  EXPECT_EQ(advised(run), Ids{"optimizer_state"});
  // The first step that we see of an old job is not its first.
  run.steps_at_start = 12'000.0;
  EXPECT_EQ(advised(run), Ids{});
}

TEST(Signatures, OrphanedWorkers) {
  Actor crashed = gpu_trainer(flat(6 * kGB));
  crashed.exited_s = 3000.0;
  const RunTracks run = SyntheticRun(2 * kHour, 10.0)
                            .add(crashed)
                            .add(worker(Role::kWrapper, flat(20 * kMB)))
                            .add(6, worker(Role::kDataloaderWorker, flat(500 * kMB)))
                            .play();

  EXPECT_EQ(advised(run), Ids{"orphaned_workers"});
}

}  // namespace
}  // namespace tidemark::tracker
