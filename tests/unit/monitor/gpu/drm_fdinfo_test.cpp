// SPDX-License-Identifier: Apache-2.0
#include "common/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "monitor/gpu/gpu_source.h"
#include "tests/support/temp_tree.h"

namespace tidemark::monitor {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

constexpr std::string_view kAmdgpu =
    "pos:\t0\nflags:\t02100002\nmnt_id:\t28\nino:\t741\n"
    "drm-driver:\tamdgpu\ndrm-client-id:\t27\ndrm-pdev:\t0000:03:00.0\n"
    "drm-memory-vram:\t2048 KiB\ndrm-memory-gtt: \t4096 KiB\ndrm-memory-cpu: \t0 KiB\n"
    "drm-engine-gfx:\t118934 ns\n";

TEST(ParseDrmFdinfo, CountsTheGpusOwnMemory) {
  const auto info = parse_drm_fdinfo(kAmdgpu);

  ASSERT_TRUE(info);
  EXPECT_EQ(info->driver, "amdgpu");
  EXPECT_EQ(info->device, "0000:03:00.0");
  EXPECT_EQ(info->client, 27U);
  EXPECT_EQ(info->used_bytes, 2 * kMiB);
}

TEST(ParseDrmFdinfo, PrefersWhatIsResident) {
  const auto info = parse_drm_fdinfo(
      "drm-driver: xe\ndrm-total-vram0: 9 MiB\ndrm-resident-vram0: 5 MiB\ndrm-shared-vram0: 1 MiB\n"
      "drm-memory-vram0: 7 MiB\ndrm-total-vram1: 3 MiB\n");

  ASSERT_TRUE(info);
  EXPECT_EQ(info->used_bytes, 8 * kMiB);
}

TEST(ParseDrmFdinfo, CountsTheMachinesMemoryWhereTheGpuHasNone) {
  const auto info =
      parse_drm_fdinfo("drm-driver:\ti915\ndrm-resident-system0:\t6 MiB\ndrm-resident-x:\t4096\n");

  ASSERT_TRUE(info);
  EXPECT_EQ(info->used_bytes, 6 * kMiB + 4096);
}

TEST(ParseDrmFdinfo, LeavesMemoryUnknownWithoutASensibleNumber) {
  for (const char* value : {"", "many KiB", "1 furlong", "99999999999999999999 KiB",
                            "18446744073709551615 MiB", "-1"}) {
    const auto info = parse_drm_fdinfo(std::string("drm-driver: x\ndrm-memory-vram: ") + value);

    ASSERT_TRUE(info);
    EXPECT_EQ(info->used_bytes, std::nullopt) << value;
  }
}

TEST(ParseDrmFdinfo, IsNothingForOtherFiles) {
  EXPECT_FALSE(parse_drm_fdinfo("pos:\t0\nflags:\t02\n"));
  EXPECT_FALSE(parse_drm_fdinfo(""));
  EXPECT_FALSE(parse_drm_fdinfo("drm-\ndrm-:\n:\n"));
}

class DrmSourceTest : public testing::Test {
 protected:
  void gpu(const std::string& node, const std::string& address) {
    root_.link("sys/class/drm/" + node + "/device", "../../../" + address);
  }
  void client(pid_t pid, int fd, const std::string& address, int id, int mib) {
    const std::string directory = "proc/" + std::to_string(pid);
    const std::string number = std::to_string(fd);
    root_.link(directory + "/fd/" + number, "/dev/dri/renderD128");
    root_.write(directory + "/fdinfo/" + number,
                "drm-driver:\tamdgpu\ndrm-pdev:\t" + address + "\ndrm-client-id:\t" +
                    std::to_string(id) + "\ndrm-memory-vram:\t" + std::to_string(mib) + " MiB\n");
  }
  std::vector<GpuSample> sampled(const std::vector<pid_t>& pids) {
    auto source = open_drm_fdinfo(root_.path());
    EXPECT_TRUE(source);
    auto samples = (*source)->sample(pids);
    EXPECT_TRUE(samples);
    return std::move(*samples);
  }

  tests::TempTree root_;
};

auto process(pid_t pid, std::uint64_t bytes) {
  return testing::AllOf(Field(&GpuProcessUse::pid, pid), Field(&GpuProcessUse::used_bytes, bytes));
}

TEST_F(DrmSourceTest, IsUnsupportedWithoutARenderNode) {
  const auto source = open_drm_fdinfo(root_.path());

  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().code, Errc::kUnsupported);
}

TEST_F(DrmSourceTest, SumsTheClientsOfEachProcessByDevice) {
  gpu("renderD129", "0000:41:00.0");
  gpu("renderD128", "0000:03:00.0");
  client(42, 5, "0000:03:00.0", 1, 10);
  client(42, 6, "0000:03:00.0", 2, 20);
  client(42, 7, "0000:41:00.0", 1, 5);
  client(43, 5, "0000:41:00.0", 9, 7);
  root_.link("proc/42/fd/8", "socket:[1]");

  const auto gpus = sampled({42, 43, 44});

  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[0].index, 0U);
  EXPECT_EQ(gpus[0].name, "amdgpu 0000:03:00.0");
  EXPECT_THAT(gpus[0].processes, ElementsAre(process(42, 30 * kMiB)));
  EXPECT_THAT(gpus[1].processes, ElementsAre(process(42, 5 * kMiB), process(43, 7 * kMiB)));
}

TEST_F(DrmSourceTest, CountsAClientThatIsSharedOnce) {
  gpu("renderD128", "0000:03:00.0");
  client(42, 5, "0000:03:00.0", 1, 10);
  client(42, 6, "0000:03:00.0", 1, 10);  // dup
  client(43, 5, "0000:03:00.0", 1, 10);  // inherited

  EXPECT_THAT(sampled({42, 43}).at(0).processes, ElementsAre(process(42, 10 * kMiB)));
}

TEST_F(DrmSourceTest, TakesTheTotalsOfTheDeviceFromSysfs) {
  gpu("renderD128", "0000:03:00.0");
  root_.write("sys/bus/pci/devices/0000:03:00.0/mem_info_vram_total", "17163091968\n");
  root_.write("sys/bus/pci/devices/0000:03:00.0/mem_info_vram_used", "12345\n");

  const auto gpus = sampled({});

  EXPECT_EQ(gpus.at(0).total_bytes, 17163091968U);
  EXPECT_EQ(gpus[0].used_bytes, 12345U);
}

TEST_F(DrmSourceTest, LeavesTheTotalsUnknownWhereTheDriverHasNone) {
  gpu("renderD128", "0000:00:02.0");

  const auto gpus = sampled({42});

  EXPECT_EQ(gpus.at(0).total_bytes, std::nullopt);
  EXPECT_THAT(gpus[0].processes, IsEmpty());
}

}  // namespace
}  // namespace tidemark::monitor
