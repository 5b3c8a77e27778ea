// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/profile_model.h"
#include "tests/support/sample_profile.h"
#include "tests/support/speedscope_check.h"

namespace tidemark::report {
namespace {

using nlohmann::json;
using tests::sample_profile;
using tests::source_frame;

Profile profile_with(const std::vector<std::string>& functions, double live_bytes = 1.0) {
  ProfileSite site;
  site.live_bytes = live_bytes;
  Profile profile;
  for (const std::string& function : functions) {
    site.frames.push_back(static_cast<std::uint32_t>(profile.frames.size()));
    profile.frames.push_back(source_frame(function, "", 0, 0));
  }
  profile.sites = {site};
  return profile;
}

std::string folded(const Profile& profile, ProfileMeasure measure) {
  std::string text;
  EXPECT_TRUE(export_folded(profile, measure, [&](const std::string& line) {
    text += line;
    return ok();
  }));
  return text;
}

TEST(ProfileMeasure, RoundsAndShowsNoNegativeParts) {
  ProfileSite site;
  site.live_bytes = 2.5;
  site.growth_bytes = -7.0;
  site.alloc_bytes = 1e30;

  EXPECT_EQ(measure_of(site, ProfileMeasure::kLiveBytes), 3U);
  EXPECT_EQ(measure_of(site, ProfileMeasure::kGrowthBytes), 0U);
  EXPECT_EQ(measure_of(site, ProfileMeasure::kAllocBytes), 9'000'000'000'000'000'000U);
}

TEST(ExportFolded, WritesOneLinePerStackFromTheOutermostFrame) {
  EXPECT_EQ(
      folded(sample_profile(), ProfileMeasure::kLiveBytes),
      "trainer 4711;[deeper frames not recorded];main;libcudart.so.12+0x20;[CUDA pinned] 512\n"
      "trainer 4711;main;collate(Batch);"
      "std::vector<int, std::allocator<int> >::push_back(int) 4096\n");
}

TEST(ExportFolded, LeavesOutWhatDidNotGrow) {
  EXPECT_EQ(folded(sample_profile(), ProfileMeasure::kGrowthBytes),
            "trainer 4711;main;collate(Batch);"
            "std::vector<int, std::allocator<int> >::push_back(int) 1024\n");
}

TEST(ExportFolded, AddsUpEqualStacks) {
  Profile profile = profile_with({"inner", "outer"}, 5.0);
  profile.sites.push_back(profile.sites[0]);

  EXPECT_EQ(folded(profile, ProfileMeasure::kLiveBytes), "outer;inner 10\n");
}

TEST(ExportFolded, NamesCannotBreakTheFormat) {
  EXPECT_EQ(folded(profile_with({"a;b", "c\nd 9", "e\xff"}), ProfileMeasure::kLiveBytes),
            "e\\xff;c\\nd 9;a:b 1\n");
}

TEST(ExportFolded, SaysWhereNoStackIsKnown) {
  EXPECT_EQ(folded(profile_with({}), ProfileMeasure::kLiveBytes), "[unknown stack] 1\n");
}

TEST(ExportSpeedscope, HasTheFieldsThatTheSchemaAsksFor) {
  const std::string text = export_speedscope(
      sample_profile(), {ProfileMeasure::kLiveBytes, ProfileMeasure::kGrowthBytes});

  const json file = json::parse(text);
  EXPECT_EQ(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
  EXPECT_EQ(file["exporter"], "tidemark");
  EXPECT_EQ(file["name"], "trainer 4711");
  EXPECT_EQ(file["activeProfileIndex"], 0);
  ASSERT_EQ(file["profiles"].size(), 2U);
  const json& live = file["profiles"][0];
  EXPECT_EQ(live["type"], "sampled");
  EXPECT_EQ(live["name"], "trainer 4711: live bytes");
  EXPECT_EQ(live["unit"], "bytes");
  EXPECT_EQ(live["startValue"], 0);
  EXPECT_EQ(live["endValue"], 4608);
  EXPECT_EQ(live["weights"], json::parse("[4096, 512]"));
  const json& growth = file["profiles"][1];
  EXPECT_EQ(growth["weights"], json::parse("[1024]"));
  EXPECT_EQ(growth["samples"].size(), 1U);
}

TEST(ExportSpeedscope, IsValid) {
  Profile empty;
  for (const Profile& profile : {sample_profile(), profile_with({}), empty}) {
    EXPECT_EQ(tests::speedscope_problem(export_speedscope(
                  profile, {ProfileMeasure::kLiveBytes, ProfileMeasure::kAllocBlocks})),
              "");
  }
}

TEST(SpeedscopeProblem, FindsWhatIsWrong) {
  json file = json::parse(export_speedscope(sample_profile(), {ProfileMeasure::kLiveBytes}));
  const auto after = [&](const char* pointer, const json& value) {
    json changed = file;
    changed[json::json_pointer(pointer)] = value;
    return tests::speedscope_problem(changed.dump());
  };

  EXPECT_EQ(after("/name", "x"), "");
  EXPECT_EQ(after("/shared/frames/0/name", 3), "a frame has no name");
  EXPECT_EQ(after("/profiles/0/unit", "MB"), "the unit of a profile is none of the format's");
  EXPECT_EQ(after("/profiles/0/samples/0/0", 99), "a sample has a frame that is not there");
  EXPECT_EQ(after("/profiles/0/weights", json::array()), "there is not one weight for each sample");
  EXPECT_EQ(after("/profiles/0/endValue", -1), "a profile does not begin and end");
  EXPECT_EQ(after("/activeProfileIndex", 1), "the active profile is not there");
  EXPECT_EQ(tests::speedscope_problem("[]"), "it is no JSON object");
}

TEST(ExportSpeedscope, SamplesPointToFramesFromTheOutermost) {
  const json file = json::parse(export_speedscope(sample_profile(), {ProfileMeasure::kLiveBytes}));

  const json& frames = file["shared"]["frames"];
  std::vector<std::string> names;
  for (const json& frame : file["profiles"][0]["samples"][0]) {
    names.push_back(frames.at(frame.get<std::size_t>())["name"]);
  }
  EXPECT_THAT(names,
              testing::ElementsAre("main", "collate(Batch)", testing::HasSubstr("push_back")));
  const json& main = frames.at(file["profiles"][0]["samples"][0][0].get<std::size_t>());
  EXPECT_EQ(main["file"], "/src/main.cpp");
  EXPECT_EQ(main["line"], 7);
  const json& library = frames.at(file["profiles"][0]["samples"][1][2].get<std::size_t>());
  EXPECT_EQ(library["name"], "libcudart.so.12+0x20");
  EXPECT_FALSE(library.contains("file"));
  EXPECT_FALSE(library.contains("line"));
  EXPECT_EQ(frames.size(), 6U);  // main is listed once
}

TEST(ExportSpeedscope, CountsBlocksWithoutAUnit) {
  const json file =
      json::parse(export_speedscope(sample_profile(), {ProfileMeasure::kAllocBlocks}));

  EXPECT_EQ(file["profiles"][0]["unit"], "none");
  EXPECT_EQ(file["profiles"][0]["weights"], json::parse("[50, 2]"));
}

TEST(ExportSpeedscope, HostileNamesStayValidJson) {
  const std::string text =
      export_speedscope(profile_with({"\"\\\n\xff</script>"}), {ProfileMeasure::kLiveBytes});

  const json file = json::parse(text);
  EXPECT_EQ(file["shared"]["frames"][0]["name"], "\"\\\n\uFFFD</script>");
}

}  // namespace
}  // namespace tidemark::report
