// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/shm_pass.h"

#include <gtest/gtest.h>

namespace tidemark::monitor {
namespace {

TEST(ReadShmName, KnowsWhoMakesSegments) {
  EXPECT_EQ(read_shm_name("torch_4711_123_0").maker, "torch");
  EXPECT_EQ(read_shm_name("torch_4711_123_0").pid, 4711);
  EXPECT_EQ(read_shm_name("pym-12-abc").pid, 12);
  EXPECT_EQ(read_shm_name("joblib_memmapping_folder_88_a_b/x.pkl").pid, 88);
  EXPECT_EQ(read_shm_name("sem.loky-31-xyz").pid, 31);
  EXPECT_EQ(read_shm_name("psm_1a2b3c4d").maker, "multiprocessing.shared_memory");
  EXPECT_EQ(read_shm_name("psm_12_3").pid, std::nullopt);
  EXPECT_EQ(read_shm_name("nccl-AbCdEf").maker, "nccl");
  EXPECT_EQ(read_shm_name("sem.mp-abc").maker, "multiprocessing semaphore");
}

TEST(ReadShmName, BelievesNoNameThatOnlyLooksLikeOne) {
  for (const char* name :
       {"torch_", "torch_x_1", "torch_-5_1", "torch_99999999999_1", "torch_12", "mine", ""}) {
    EXPECT_EQ(read_shm_name(name).pid, std::nullopt) << name;
  }
}

}  // namespace
}  // namespace tidemark::monitor
