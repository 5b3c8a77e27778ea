// SPDX-License-Identifier: Apache-2.0
// GPU figures and torch's own account of them, from ticks to the verdict.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "tracker/run/run_verdict.h"
#include "tracker/run/track_builder.h"

namespace tidemark::tracker {
namespace {

using testing::DoubleEq;
using testing::DoubleNear;
using testing::IsEmpty;
using testing::SizeIs;

constexpr double kMiB = 1U << 20U;
constexpr ProcessKey kTrainer{100, 1};

std::uint64_t bytes(double mib) { return static_cast<std::uint64_t>(mib * kMiB); }

Tick tick_at(double t_s) {
  Tick tick;
  tick.t_s = t_s;
  ProcessSample sample;
  sample.key = kTrainer;
  sample.rss_bytes = bytes(110);
  sample.rss_anon_bytes = bytes(100);
  sample.rss_shmem_bytes = 0;
  sample.state = 'R';
  tick.processes = {sample};
  tick.tree = {1, bytes(110), 0, bytes(100), false, {}, 0};
  tick.roles = {{Role::kTrainer, tick.tree}};
  if (t_s == 0.0) {
    ProcessRecord record;
    record.key = kTrainer;
    record.role = Role::kTrainer;
    tick.new_processes = {record};
  }
  return tick;
}

// One device of 16 GiB, of which the trainer has `mib`.
GpuSample gpu_with(double mib, double age_s = 0.0) {
  GpuSample gpu;
  gpu.used_bytes = bytes(mib + 64.0);
  gpu.total_bytes = bytes(16384);
  gpu.reserved_bytes = bytes(256);
  gpu.processes = {{kTrainer.pid, bytes(mib)}};
  gpu.age_s = age_s;
  return gpu;
}

MarkerRecord gauge(double t_s, std::string_view name, double mib) {
  return {t_s, kTrainer, MarkerKind::kGauge, static_cast<std::int64_t>(mib * kMiB),
          std::string(name)};
}

RunTracks built(const std::vector<Tick>& ticks) {
  TrackBuilder builder;
  EXPECT_TRUE(builder.begin({}));
  for (const Tick& tick : ticks) {
    EXPECT_TRUE(builder.add(tick));
  }
  return builder.take();
}

const Track& tree_of(const RunTracks& run) { return run.tracks.front(); }

TEST(GpuTracks, DoNotTakeARepeatedFigureForASampleOfNow) {
  std::vector<Tick> ticks;
  for (int t = 0; t < 5; ++t) {
    ticks.push_back(tick_at(t));
    // Read at 0 and, a moment late, at 2.7: at 3 it is new.
    const double age_s = t < 3 ? t : t - 2.7;
    ticks.back().gpus = {gpu_with(t < 3 ? 10 : 20, age_s)};
  }

  const RunTracks run = built(ticks);

  EXPECT_THAT(tree_of(run).of(Metric::kGpu).cells(), SizeIs(2));
}

TEST(GpuTracks, KnowTheLimitOfTheOnlyDeviceInUse) {
  Tick tick = tick_at(0);
  GpuSample idle;
  idle.index = 1;
  idle.total_bytes = bytes(1);
  tick.gpus = {gpu_with(100), idle};

  const RunTracks run = built({tick});

  ASSERT_TRUE(run.gpu_limit_bytes);
  EXPECT_THAT(*run.gpu_limit_bytes, DoubleEq((16384.0 - 256.0 - 64.0) * kMiB));
  EXPECT_EQ(run.gpu_limit_source, "gpu0, beside its other users");
}

TEST(GpuTracks, KnowNoLimitOfSeveralDevices) {
  Tick tick = tick_at(0);
  GpuSample second = gpu_with(100);
  second.index = 1;
  tick.gpus = {gpu_with(100), second};

  EXPECT_EQ(built({tick}).gpu_limit_bytes, std::nullopt);
}

std::vector<Tick> growing_run(double torch_share, bool tells_processes = true) {
  std::vector<Tick> ticks;
  for (int t = 0; t < 400; ++t) {
    ticks.push_back(tick_at(t));
    const double grown = 10.0 * t;
    ticks.back().gpus = {gpu_with(500 + grown)};
    if (!tells_processes) {
      ticks.back().gpus[0].processes.clear();
    }
    const double at = t - 0.3;
    ticks.back().markers = {{at, kTrainer, MarkerKind::kStep, t, {}},
                            gauge(at, kTorchAllocatedGauge, 100 + 0.5 * torch_share * grown),
                            gauge(at, kTorchReservedGauge, 200 + torch_share * grown)};
  }
  return ticks;
}

RunVerdict judged(const RunTracks& run, std::optional<Metric> metric) {
  Options options;
  options.warmup.steps = 20;
  auto verdict = judge_run(run, options, metric);
  EXPECT_TRUE(verdict);
  return verdict ? *std::move(verdict) : RunVerdict{};
}

bool advises(const RunVerdict& verdict, std::string_view id) {
  for (const Advice& advice : verdict.advice) {
    if (advice.id == id) {
      return true;
    }
  }
  return false;
}

TEST(GpuTracks, AreJudgedLikeTheOthersAndAgainstTheLimitOfTheDevice) {
  const RunTracks run = built(growing_run(1.0));

  const RunVerdict verdict = judged(run, Metric::kGpu);

  EXPECT_EQ(verdict.verdict, Verdict::kLeak);
  EXPECT_EQ(verdict.answer().metric, Metric::kGpu);
  EXPECT_EQ(verdict.answer().series.forecast.limit_bytes, run.gpu_limit_bytes);
  EXPECT_EQ(verdict.held_as, std::nullopt);
}

TEST(GpuTracks, SayWhatTorchsAllocatorExplains) {
  const RunVerdict verdict = judged(built(growing_run(0.9)), Metric::kGpu);

  ASSERT_TRUE(verdict.gpu_growth);
  EXPECT_FALSE(verdict.gpu_growth->counts_all_users);
  ASSERT_TRUE(verdict.gpu_growth->explained_share());
  EXPECT_THAT(*verdict.gpu_growth->explained_share(), DoubleNear(0.9, 0.02));
  EXPECT_THAT(*verdict.gpu_growth->torch_allocated_bytes / verdict.gpu_growth->torch_reserved_bytes,
              DoubleNear(0.5, 0.02));
  EXPECT_FALSE(advises(verdict, "gpu_outside_torch"));
}

TEST(GpuTracks, RecogniseGrowthOutsideTorchsAllocator) {
  const RunVerdict verdict = judged(built(growing_run(0.05)), Metric::kGpu);

  ASSERT_TRUE(verdict.gpu_growth);
  EXPECT_THAT(*verdict.gpu_growth->explained_share(), DoubleNear(0.05, 0.02));
  EXPECT_TRUE(advises(verdict, "gpu_outside_torch"));
}

TEST(GpuTracks, SayNothingOfTorchWithoutItsOwnAccount) {
  std::vector<Tick> ticks = growing_run(1.0);
  for (Tick& tick : ticks) {
    std::erase_if(tick.markers, [](const MarkerRecord& m) { return m.kind == MarkerKind::kGauge; });
  }

  const RunVerdict verdict = judged(built(ticks), Metric::kGpu);

  EXPECT_EQ(verdict.gpu_growth, std::nullopt);
  EXPECT_FALSE(advises(verdict, "gpu_outside_torch"));
}

// In a container, where the pids of the driver mean nothing.
TEST(GpuTracks, FallBackToTheDevicesWhereTheDriverDoesNotTellProcesses) {
  const RunTracks run = built(growing_run(1.0, /*tells_processes=*/false));

  const RunVerdict verdict = judged(run, Metric::kGpu);

  EXPECT_EQ(verdict.verdict, Verdict::kLeak);
  EXPECT_EQ(verdict.answer().metric, Metric::kGpuDevice);
  ASSERT_TRUE(verdict.gpu_growth);
  EXPECT_TRUE(verdict.gpu_growth->counts_all_users);
}

TEST(GpuTracks, ForgetWhatADeadProcessHeld) {
  std::vector<Tick> ticks;
  for (int t = 0; t < 3; ++t) {
    ticks.push_back(tick_at(t));
  }
  const ProcessKey other{200, 5};
  ticks[0].markers = {gauge(0, kTorchReservedGauge, 10),
                      {0, other, MarkerKind::kGauge, static_cast<std::int64_t>(7 * kMiB),
                       std::string(kTorchReservedGauge)}};
  ticks[2].markers = {gauge(1.5, kTorchReservedGauge, 11)};
  TrackBuilder builder;
  ASSERT_TRUE(builder.begin({}));
  ASSERT_TRUE(builder.add(ticks[0]));
  ASSERT_TRUE(builder.add(ticks[1]));
  ProcessRecord ended;
  ended.key = other;
  ASSERT_TRUE(builder.process_ended(ended));
  ASSERT_TRUE(builder.add(ticks[2]));

  const RunTracks run = builder.take();

  const auto& cells = tree_of(run).of(Metric::kTorchReserved).cells();
  ASSERT_THAT(cells, SizeIs(2));
  EXPECT_THAT(cells[0].max_bytes, DoubleEq(17 * kMiB));
  EXPECT_THAT(cells[1].max_bytes, DoubleEq(11 * kMiB));
}

TEST(GpuTracks, IgnoreGaugesOfOtherNamesAndImpossibleValues) {
  Tick tick = tick_at(0);
  tick.markers = {gauge(0, "cache_bytes", 5), gauge(0, kTorchReservedGauge, -5)};

  EXPECT_THAT(tree_of(built({tick})).of(Metric::kTorchReserved).cells(), IsEmpty());
}

}  // namespace
}  // namespace tidemark::tracker
