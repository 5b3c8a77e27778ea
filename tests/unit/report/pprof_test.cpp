// SPDX-License-Identifier: Apache-2.0
// Decodes what export_pprof() writes with a decoder that shares nothing with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "common/check.h"
#include "report/profile_model.h"
#include "tests/support/sample_profile.h"
#include "tests/support/subprocess.h"
#include "tests/support/temp_tree.h"

namespace tidemark::report {
namespace {

using testing::ElementsAre;
using tests::sample_profile;

std::uint64_t take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    TIDEMARK_CHECK(!bytes.empty() && shift < 64, "a number without an end");
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) {
      return value;
    }
  }
}

// The fields of one message: numbers and byte strings by field number, in their order.
struct Message {
  std::map<std::uint64_t, std::vector<std::uint64_t>> numbers;
  std::map<std::uint64_t, std::vector<std::string_view>> texts;

  std::uint64_t number(std::uint64_t field) const {
    const auto found = numbers.find(field);
    return found == numbers.end() ? 0 : found->second.at(0);
  }
};

Message decode(std::string_view bytes) {
  Message message;
  while (!bytes.empty()) {
    const std::uint64_t key = take_varint(bytes);
    if ((key & 7U) == 0) {
      message.numbers[key >> 3U].push_back(take_varint(bytes));
      continue;
    }
    TIDEMARK_CHECK((key & 7U) == 2, "a field of a type that profile.proto does not have");
    const std::uint64_t size = take_varint(bytes);
    TIDEMARK_CHECK(size <= bytes.size(), "a text without an end");
    message.texts[key >> 3U].push_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return message;
}

std::vector<std::uint64_t> unpack(std::string_view bytes) {
  std::vector<std::uint64_t> values;
  while (!bytes.empty()) {
    values.push_back(take_varint(bytes));
  }
  return values;
}

// A profile as a reader of the format sees it.
class Decoded {
 public:
  explicit Decoded(const Profile& profile) : bytes_(export_pprof(profile)), top_(decode(bytes_)) {}

  std::string text(std::uint64_t index) const { return std::string(top_.texts.at(6).at(index)); }
  const Message& top() const { return top_; }
  const std::string& bytes() const { return bytes_; }

  std::vector<Message> all(std::uint64_t field) const {
    std::vector<Message> messages;
    for (const std::string_view bytes : top_.texts.at(field)) {
      messages.push_back(decode(bytes));
    }
    return messages;
  }
  Message by_id(std::uint64_t field, std::uint64_t id) const {
    for (const Message& message : all(field)) {
      if (message.number(1) == id) {
        return message;
      }
    }
    ADD_FAILURE() << "field " << field << " has no id " << id;
    return {};
  }
  // "function file:line" of each line of each location, innermost first.
  std::vector<std::string> stack(const Message& sample) const {
    std::vector<std::string> lines;
    for (const std::uint64_t id : unpack(sample.texts.at(1).at(0))) {
      const Message location = by_id(4, id);
      for (const std::string_view bytes : location.texts.at(4)) {
        const Message line = decode(bytes);
        const Message function = by_id(5, line.number(1));
        lines.push_back(text(function.number(2)) + " " + text(function.number(4)) + ":" +
                        std::to_string(line.number(2)));
      }
    }
    return lines;
  }

 private:
  std::string bytes_;
  Message top_;
};

TEST(ExportPprof, ListsItsSampleTypesWithTheirUnits) {
  const Decoded profile(sample_profile());

  std::vector<std::string> types;
  for (const Message& type : profile.all(1)) {
    types.push_back(profile.text(type.number(1)) + "/" + profile.text(type.number(2)));
  }
  EXPECT_THAT(types, ElementsAre("inuse_space/bytes", "inuse_objects/count", "alloc_space/bytes",
                                 "alloc_objects/count", "growth_space/bytes"));
  EXPECT_EQ(profile.text(profile.top().number(14)), "inuse_space");
  EXPECT_EQ(profile.text(0), "");
}

TEST(ExportPprof, SamplesHaveAllValuesAndTheWholeStack) {
  const Decoded profile(sample_profile());

  const auto samples = profile.all(2);

  ASSERT_EQ(samples.size(), 2U);
  EXPECT_THAT(unpack(samples[0].texts.at(2).at(0)), ElementsAre(4096, 16, 10000, 50, 1024));
  EXPECT_THAT(unpack(samples[1].texts.at(2).at(0)),
              ElementsAre(512, 1, 612, 2, static_cast<std::uint64_t>(-100)));
  EXPECT_THAT(
      profile.stack(samples[0]),
      ElementsAre("std::vector<int, std::allocator<int> >::push_back(int) /usr/include/vector.h:30",
                  "collate(Batch) /src/collate.cpp:42", "main /src/main.cpp:7"));
  EXPECT_THAT(profile.stack(samples[1]),
              ElementsAre("libcudart.so.12+0x20 :0", "main /src/main.cpp:7"));
}

TEST(ExportPprof, InlinedFunctionsShareTheLocationOfTheirCaller) {
  const Decoded profile(sample_profile());

  const auto locations = unpack(profile.all(2).at(0).texts.at(1).at(0));

  ASSERT_EQ(locations.size(), 2U);
  const Message inner = profile.by_id(4, locations[0]);
  EXPECT_EQ(inner.texts.at(4).size(), 2U);
  EXPECT_EQ(inner.number(3), 0x500U);
  EXPECT_EQ(profile.all(4).size(), 3U);  // main is one location for both sites
}

TEST(ExportPprof, MappingsCarryPathAndBuildId) {
  const Decoded profile(sample_profile());

  const auto mappings = profile.all(3);

  ASSERT_EQ(mappings.size(), 2U);
  EXPECT_EQ(mappings[0].number(1), 1U);
  EXPECT_EQ(profile.text(mappings[0].number(5)), "/usr/bin/train");
  EXPECT_EQ(profile.text(mappings[0].number(6)), "abcd01");
  EXPECT_EQ(mappings[0].number(7), 1U);   // has functions
  EXPECT_EQ(mappings[0].number(10), 1U);  // has inlined frames
  EXPECT_EQ(profile.text(mappings[1].number(5)), "/usr/lib/libcudart.so.12");
  EXPECT_EQ(profile.text(mappings[1].number(6)), "");
  EXPECT_EQ(mappings[1].number(7), 1U);
  EXPECT_EQ(mappings[1].number(10), 0U);
  const auto locations = unpack(profile.all(2).at(1).texts.at(1).at(0));
  EXPECT_EQ(profile.by_id(4, locations.at(0)).number(2), 2U);
}

TEST(ExportPprof, CarriesTimesPeriodKindAndProcess) {
  const Decoded profile(sample_profile());

  EXPECT_EQ(profile.top().number(9), 1'700'000'000'000'000'000U);
  EXPECT_EQ(profile.top().number(10), 60'000'000'000U);
  EXPECT_EQ(profile.top().number(12), 524288U);
  const Message period = profile.all(11).at(0);
  EXPECT_EQ(profile.text(period.number(1)), "space");
  const Message label = decode(profile.all(2).at(1).texts.at(3).at(0));
  EXPECT_EQ(profile.text(label.number(1)), "kind");
  EXPECT_EQ(profile.text(label.number(2)), "CUDA pinned");
  EXPECT_EQ(profile.text(unpack(profile.top().texts.at(13).at(0)).at(0)), "trainer 4711");
}

TEST(ExportPprof, HostileNamesAreEscapedText) {
  Profile profile = sample_profile();
  profile.frames[2].function = "bad\xff\nname";
  const Decoded decoded(profile);

  EXPECT_THAT(decoded.stack(decoded.all(2).at(0)).at(2), testing::StartsWith("bad\\xff\\nname "));
}

TEST(ExportPprof, AnEmptyProfileIsValid) {
  const Decoded profile(Profile{});

  EXPECT_EQ(profile.all(1).size(), 5U);
  EXPECT_EQ(profile.top().texts.count(2), 0U);
  EXPECT_EQ(profile.top().number(12), 1U);
}

TEST(ExportPprof, GoToolPprofReadsIt) {
  if (std::system("command -v go >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "no go on this machine";
  }
  tests::TempTree tree;
  tree.write("profile.pb", export_pprof(sample_profile()));

  tests::Subprocess pprof({"go", "tool", "pprof", "-top", "-unit=B", tree.path("profile.pb")});

  EXPECT_EQ(pprof.wait(), 0) << pprof.errors();
  EXPECT_THAT(pprof.output(), testing::HasSubstr("Type: inuse_space"));
  EXPECT_THAT(pprof.output(), testing::ContainsRegex("4096B .*4096B .*push_back"));
}

}  // namespace
}  // namespace tidemark::report
