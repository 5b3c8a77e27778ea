// SPDX-License-Identifier: Apache-2.0
#include "report/track_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark::report {
namespace {

using testing::HasSubstr;
using testing::Not;
using tracker::Axis;
using tracker::GpuGrowth;

constexpr double kMiB = 1U << 20U;

GpuGrowth growth_of(double driver_mib, double reserved_mib, double allocated_mib) {
  GpuGrowth growth;
  growth.since.step = 25.0;
  growth.driver_bytes = driver_mib * kMiB;
  growth.torch_reserved_bytes = reserved_mib * kMiB;
  growth.torch_allocated_bytes = allocated_mib * kMiB;
  return growth;
}

TEST(GpuGrowthText, SaysThatMostOfItIsBesideTorch) {
  EXPECT_EQ(gpu_growth_text(growth_of(1000, 50, 50), Axis::kSteps),
            "GPU memory grew by 1000 MiB since step 25, torch's allocator explains 50.0 MiB (5 %): "
            "most of it was allocated beside torch, by another library or the driver itself");
}

TEST(GpuGrowthText, SaysThatTorchHoldsIt) {
  EXPECT_EQ(gpu_growth_text(growth_of(1000, 980, 900), Axis::kSteps),
            "GPU memory grew by 1000 MiB since step 25, torch's allocator explains 980 MiB (98 %)");
}

TEST(GpuGrowthText, SaysWhenTorchOnlyKeepsWhatIsFree) {
  EXPECT_THAT(gpu_growth_text(growth_of(1000, 980, 10), Axis::kSteps),
              HasSubstr("explains 980 MiB (98 %); tensors +10.0 MiB: the allocator keeps"));
}

TEST(GpuGrowthText, MakesNoShareOfNothing) {
  for (const double driver_mib : {0.0, -5.0, 0.1}) {
    const std::string text = gpu_growth_text(growth_of(driver_mib, 3, 3), Axis::kSteps);

    EXPECT_THAT(text, HasSubstr("torch's allocator holds +3.00 MiB"));
    EXPECT_THAT(text, Not(HasSubstr("%")));
  }
}

TEST(CurveText, SaysWhatTheCurveIsOf) {
  const tracker::Track tree;

  EXPECT_EQ(curve_text(tracker::Metric::kFootprint, tree), "footprint of the whole tree");
  EXPECT_EQ(curve_text(tracker::Metric::kGpu, tree), "GPU memory of the whole tree");
  EXPECT_THAT(curve_text(tracker::Metric::kGpuDevice, tree), HasSubstr("of all users"));
}

}  // namespace
}  // namespace tidemark::report
