// SPDX-License-Identifier: Apache-2.0
#include "monitor/markers/marker_place.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>

#include "monitor/procfs/process_handle.h"

namespace tidemark::monitor {
namespace {

TEST(MarkerPlace, OfThisProcessIsWhereTheWritersPutIt) {
  const auto self = process_key_of("/proc", ::getpid());
  ASSERT_TRUE(self);
  const auto place = locate_markers(*self);

  ASSERT_TRUE(place) << place.error().what;
  EXPECT_TRUE(std::filesystem::equivalent(place->base, "/dev/shm"));
  EXPECT_EQ(place->directory, fmt::format("tidemark-{}", ::geteuid()));
  EXPECT_EQ(place->owner, ::geteuid());
  EXPECT_EQ(place->inner_pid, ::getpid());
  const auto name = parse_marker_file_name(place->prefix + "c.markers");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->pid, ::getpid());
  EXPECT_EQ(name->start_ticks, self->start_ticks);
}

TEST(MarkerPlace, OfADeadProcessIsGone) {
  const auto self = process_key_of("/proc", ::getpid());
  ASSERT_TRUE(self);
  const auto place = locate_markers({self->pid, self->start_ticks + 1});

  ASSERT_FALSE(place);
  EXPECT_EQ(place.error().code, Errc::kGone);
}

TEST(MarkerFileName, IsParsed) {
  const auto name = parse_marker_file_name("141495-153612-4026531836.py1.markers");

  ASSERT_TRUE(name);
  EXPECT_EQ(name->pid, 141495);
  EXPECT_EQ(name->start_ticks, 153612U);
  EXPECT_EQ(name->pid_namespace, 4026531836U);
  EXPECT_FALSE(name->draft);
}

TEST(MarkerFileName, KnowsDrafts) {
  const auto name = parse_marker_file_name("1-2-3.c.markers.7f00.new");

  ASSERT_TRUE(name);
  EXPECT_TRUE(name->draft);
}

TEST(MarkerFileName, RefusesForeignNames) {
  for (const char* name :
       {"", ".", "..", "1-2-3.c.marker", "1-2.c.markers", "-1-2-3.c.markers", "0-2-3.c.markers",
        "1-2-x.c.markers", "99999999999-2-3.c.markers", "1-2-3.markersx", ".markers", "a.new"}) {
    EXPECT_FALSE(parse_marker_file_name(name)) << name;
  }
}

TEST(UidMap, MapsIntoTheNamespace) {
  constexpr const char* kRootless =
      "         0       1000          1\n         1     100000      65536\n";

  EXPECT_EQ(map_uid_inside("         0          0 4294967295\n", 1000), 1000U);
  EXPECT_EQ(map_uid_inside(kRootless, 1000), 0U);
  EXPECT_EQ(map_uid_inside(kRootless, 100'999), 1000U);
  EXPECT_EQ(map_uid_inside(kRootless, 0), std::nullopt) << "not in the namespace";
  EXPECT_EQ(map_uid_inside("garbage\n", 0), std::nullopt);
  EXPECT_EQ(map_uid_inside("", 0), std::nullopt);
}

}  // namespace
}  // namespace tidemark::monitor
