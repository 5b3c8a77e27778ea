// SPDX-License-Identifier: Apache-2.0
#include "check/baseline.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_tree.h"

namespace tidemark::check {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using tests::TempTree;

MachineFacts machine(std::uint32_t cpus = 8) {
  return {"x86_64", cpus, std::uint64_t{32} << 30U, 4096, "madvise", "glibc 2.36", "6.1.0"};
}

StoredRun run_of(double plateau_bytes) {
  StoredRun run;
  run.figures = {0.0, std::nullopt, plateau_bytes, 2 * plateau_bytes};
  run.at = "2026-11-16T12:00:00Z";
  run.commit = "abc";
  return run;
}

TEST(MachineClass, IgnoresTheKernelAndALittleMemory) {
  MachineFacts other = machine();
  other.kernel = "6.12.1";
  other.memory_bytes -= other.memory_bytes / 8;

  EXPECT_THAT(class_differences(machine(), other), IsEmpty());
}

TEST(MachineClass, DiffersByWhatChangesMemory) {
  MachineFacts other = machine(2);
  other.memory_bytes /= 4;
  other.huge_pages = "always";

  EXPECT_THAT(class_differences(machine(), other),
              ElementsAre("8 CPUs here, 2 there", "32.0 GiB of memory here, 8.00 GiB there",
                          "huge pages madvise here, always there"));
}

TEST(MachineClass, OfThisMachineIsKnown) {
  const MachineFacts here = this_machine();

  EXPECT_FALSE(here.arch.empty());
  EXPECT_GT(here.cpus, 0U);
  EXPECT_GT(here.memory_bytes, 0U);
  EXPECT_THAT(here.libc, HasSubstr("glibc"));
  EXPECT_THAT(class_differences(here, this_machine()), IsEmpty());
}

TEST(MachineClass, RoundsItsMemoryInText) {
  MachineFacts facts = machine();
  EXPECT_EQ(machine_text(facts), "x86_64, 8 CPUs, 32 GiB");
  facts.memory_bytes -= facts.memory_bytes / 16;
  EXPECT_EQ(machine_text(facts), "x86_64, 8 CPUs, 32 GiB");
  facts.memory_bytes = std::uint64_t{47} << 29U;
  EXPECT_EQ(machine_text(facts), "x86_64, 8 CPUs, 24 GiB");
}

// Every file that differs from a good one in a few bytes is read, or refused with a reason.
TEST(BaselineFile, SurvivesDamage) {
  Baseline baseline;
  add_run(baseline, "train", machine(), run_of(1e9));
  const std::string good = baseline_text(baseline);
  std::uint32_t random = 1;
  const auto next = [&] { return (random = random * 1664525U + 1013904223U) >> 8U; };
  for (int i = 0; i < 3000; ++i) {
    std::string text = good;
    for (std::uint32_t n = next() % 4; n > 0; --n) {
      text[next() % text.size()] = static_cast<char>(next());
    }
    text.resize(next() % 3 == 0 ? next() % text.size() : text.size());

    const auto again = parse_baseline(text);

    if (again) {
      EXPECT_TRUE(parse_baseline(baseline_text(*again)));
    } else {
      EXPECT_FALSE(again.error().what.empty());
    }
  }
}

TEST(BaselineFile, KeepsWhatItWasGiven) {
  const TempTree folder;
  Baseline baseline;
  add_run(baseline, "tra\"in\n", machine(), run_of(1e9));
  add_run(baseline, "tra\"in\n", machine(), run_of(2e9));
  add_run(baseline, "tra\"in\n", machine(2), run_of(3e9));

  ASSERT_TRUE(write_baseline(folder.path("base.json"), baseline));
  const auto again = read_baseline(folder.path("base.json"));

  ASSERT_TRUE(again) << again.error().what;
  const BaselineEntry* const entry = find_entry(*again, "tra\"in\n", machine());
  ASSERT_NE(entry, nullptr);
  ASSERT_EQ(entry->runs.size(), 2U);
  EXPECT_EQ(entry->runs[1].figures.plateau_bytes, 2e9);
  EXPECT_EQ(entry->runs[1].figures.peak_bytes, 4e9);
  EXPECT_EQ(entry->runs[1].figures.rate_bytes_per_s, 0.0);
  EXPECT_FALSE(entry->runs[1].figures.rate_bytes_per_step);
  EXPECT_EQ(entry->runs[1].commit, "abc");
  EXPECT_THAT(class_differences(entry->machine, machine()), IsEmpty());
}

TEST(BaselineFile, PrefersTheOwnClassOfMachine) {
  Baseline baseline;
  add_run(baseline, "x", machine(2), run_of(1e9));

  EXPECT_EQ(find_entry(baseline, "x", machine(8))->machine.cpus, 2U);  // better than nothing
  add_run(baseline, "x", machine(8), run_of(2e9));
  EXPECT_EQ(find_entry(baseline, "x", machine(8))->machine.cpus, 8U);
  EXPECT_EQ(find_entry(baseline, "y", machine(8)), nullptr);
}

TEST(BaselineFile, ForgetsTheOldestRuns) {
  Baseline baseline;
  for (std::size_t i = 0; i < kMostStoredRuns + 5; ++i) {
    add_run(baseline, "x", machine(), run_of(static_cast<double>(i)));
  }

  const BaselineEntry* const entry = find_entry(baseline, "x", machine());
  ASSERT_EQ(entry->runs.size(), kMostStoredRuns);
  EXPECT_EQ(entry->runs.front().figures.plateau_bytes, 5.0);
}

TEST(BaselineFile, SaysWhatIsWrongWithIt) {
  const auto error = [](const std::string& text) {
    const auto baseline = parse_baseline(text);
    EXPECT_FALSE(baseline) << text;
    return baseline ? "" : baseline.error().what;
  };
  EXPECT_THAT(error("{\"schema\": 1,\n"), HasSubstr("line 2"));
  EXPECT_THAT(error(R"({"schema": 9, "checks": {}})"), HasSubstr("schema 1 only"));
  EXPECT_THAT(error(R"({"schema": 1})"), HasSubstr("checks"));
  EXPECT_THAT(error(R"({"schema": 1, "checks": {"x": {}}})"), HasSubstr("checks.x"));
  EXPECT_THAT(error(R"({"schema": 1, "checks": {"x": [{"runs": []}]}})"),
              HasSubstr("checks.x[0]: it needs a machine"));
  EXPECT_THAT(error(R"({"schema": 1, "checks": {"x": [{"machine": {}, "runs": [{}]}]}})"),
              HasSubstr("checks.x[0].runs[0]"));
  EXPECT_THAT(
      error(
          R"({"schema": 1, "checks": {"x": [{"machine": {}, "runs": [{"plateau_bytes": -1, "peak_bytes": 1}]}]}})"),
      HasSubstr("runs[0]"));
  EXPECT_THAT(
      error(
          R"({"schema": 1, "checks": {"x": [{"machine": {}, "runs": [{"plateau_bytes": 1, "peak_bytes": 1e300}]}]}})"),
      HasSubstr("runs[0]"));
}

TEST(BaselineFile, NamesTheFileThatIsCorrupt) {
  const TempTree folder;
  folder.write("base.json", "\x01\x02");

  const auto corrupt = read_baseline(folder.path("base.json"));
  const auto missing = read_baseline(folder.path("none.json"));

  ASSERT_FALSE(corrupt);
  EXPECT_THAT(corrupt.error().what, HasSubstr("base.json: line 1"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Errc::kNotFound);
}

}  // namespace
}  // namespace tidemark::check
