// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/symbolizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <random>

#include "common/check.h"
#include "common/io.h"
#include "common/text.h"
#include "profiler/reader/debug_server.h"
#include "profiler/reader/trace_world.h"
#include "tests/support/paths.h"
#include "tests/support/subprocess.h"
#include "tests/support/temp_tree.h"

namespace tidemark::reader {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;
using tests::Subprocess;
using tests::TempTree;

const std::string kVictim = tests::victim_path("symbol_victim");

// What the program says of itself.
struct Truth {
  std::string build_id;
  std::uint64_t inlined = 0;
  std::uint32_t leaf_line = 0;
  std::uint32_t middle_line = 0;
  std::uint32_t outer_line = 0;
  std::uint64_t hidden = 0;
  std::uint32_t hidden_line = 0;
  std::uint64_t local = 0;
  std::uint32_t local_line = 0;
  std::uint64_t start = 0;
};

template <typename T>
T number(std::string_view text) {
  const auto value = parse_number<T>(text);
  TIDEMARK_CHECK(value, "the victim printed no number");
  return *value;
}

const Truth& truth() {
  static const Truth kTruth = [] {
    Subprocess program({kVictim});
    TIDEMARK_CHECK(program.wait() == 0, "the victim failed");
    const auto lines = split(program.output(), '\n');
    const auto inlined = split(lines.at(1), ' ');
    const auto hidden = split(lines.at(2), ' ');
    const auto local = split(lines.at(3), ' ');
    return Truth{std::string(split(lines.at(0), ' ').at(1)),
                 number<std::uint64_t>(inlined.at(1)),
                 number<std::uint32_t>(inlined.at(2)),
                 number<std::uint32_t>(inlined.at(3)),
                 number<std::uint32_t>(inlined.at(4)),
                 number<std::uint64_t>(hidden.at(1)),
                 number<std::uint32_t>(hidden.at(2)),
                 number<std::uint64_t>(local.at(1)),
                 number<std::uint32_t>(local.at(2)),
                 number<std::uint64_t>(split(lines.at(4), ' ').at(1))};
  }();
  return kTruth;
}

void run(const std::vector<std::string>& argv) {
  Subprocess program(argv);
  const int status = program.wait();
  ASSERT_EQ(status, 0) << argv[0] << ": " << program.errors();
}

void expect_the_inlined_frames(const std::vector<SourceFrame>& frames) {
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_EQ(frames[0].function, "victims::leaf(int&)");
  EXPECT_EQ(frames[0].line, truth().leaf_line);
  EXPECT_TRUE(frames[0].is_inlined);
  EXPECT_EQ(frames[1].function, "victims::middle(int&)");
  EXPECT_EQ(frames[1].line, truth().middle_line);
  EXPECT_TRUE(frames[1].is_inlined);
  EXPECT_EQ(frames[2].function, "victims::outer(int)");
  EXPECT_EQ(frames[2].line, truth().outer_line);
  EXPECT_FALSE(frames[2].is_inlined);
  for (const SourceFrame& frame : frames) {
    EXPECT_THAT(frame.file, EndsWith("/tests/programs/symbol_victim.cpp"));
    EXPECT_EQ(frame.offset, truth().inlined);
  }
}

TEST(Symbolizer, NamesInlinedFunctionsWithTheirLines) {
  Symbolizer symbolizer;

  const auto frames = symbolizer.resolve(kVictim, truth().build_id, truth().inlined);

  expect_the_inlined_frames(frames);
  EXPECT_EQ(frames.at(0).module_path, kVictim);
  EXPECT_EQ(frames.at(0).build_id, truth().build_id);
  EXPECT_TRUE(symbolizer.problems().empty());
}

TEST(Symbolizer, NamesAStaticFunctionWithItsLine) {
  Symbolizer symbolizer;

  const auto frames = symbolizer.resolve(kVictim, "", truth().hidden);

  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].function, "victims::hidden(int)");
  EXPECT_EQ(frames[0].line, truth().hidden_line);
}

TEST(Symbolizer, NamesALocalInlinedFunctionWithItsScope) {
  Symbolizer symbolizer;

  const auto frames = symbolizer.resolve(kVictim, "", truth().local);

  ASSERT_EQ(frames.size(), 2U);
  // Of a local function's parameters clang tells, gcc does not.
  EXPECT_THAT(frames[0].function, testing::StartsWith("victims::(anonymous namespace)::Box::fill"));
  EXPECT_EQ(frames[0].line, truth().local_line);
  EXPECT_EQ(frames[1].function, "victims::caller_of_local(int)");
}

TEST(Symbolizer, DoesNotTakeTheLastLineOfAnotherFunctionForCodeWithoutLines) {
  Symbolizer symbolizer;

  const auto frames = symbolizer.resolve(kVictim, "", truth().start);

  ASSERT_EQ(frames.size(), 1U);
  EXPECT_THAT(frames[0].function, StartsWith("_start+0x"));
  EXPECT_EQ(frames[0].file, "");
}

TEST(Symbolizer, FindsUnitsWithoutAnIndexOfTheirAddresses) {
  TempTree tree;
  run({"objcopy", "--remove-section=.debug_aranges", kVictim, tree.path("program")});
  Symbolizer symbolizer;

  expect_the_inlined_frames(
      symbolizer.resolve(tree.path("program"), truth().build_id, truth().inlined));
}

TEST(Symbolizer, GivesTheExportedNameInAStrippedFile) {
  TempTree tree;
  run({"strip", "-o", tree.path("program"), kVictim});
  Symbolizer symbolizer;

  const auto frames = symbolizer.resolve(tree.path("program"), truth().build_id, truth().inlined);

  ASSERT_EQ(frames.size(), 1U);
  EXPECT_THAT(frames[0].function, MatchesRegex("victims::outer\\(int\\)\\+0x[0-9a-f]+"));
  EXPECT_EQ(frames[0].file, "");
  EXPECT_EQ(frames[0].line, std::nullopt);
}

TEST(Symbolizer, DoesNotTakeTheNearestNameForTheRightOne) {
  TempTree tree;
  run({"strip", "-o", tree.path("program"), kVictim});
  Symbolizer symbolizer;

  const auto frames = symbolizer.resolve(tree.path("program"), truth().build_id, truth().hidden);

  ASSERT_EQ(frames.size(), 1U);
  EXPECT_THAT(frames[0].function, MatchesRegex("program\\+0x[0-9a-f]+( \\(after .+\\))?"));
}

TEST(Symbolizer, ReadsTheDebugFileBesideAModule) {
  TempTree tree;
  tree.make_directory(".debug");
  run({"objcopy", "--only-keep-debug", kVictim, tree.path(".debug/program.debug")});
  run({"strip", "-o", tree.path("program"), kVictim});
  run({"objcopy", "--add-gnu-debuglink=" + tree.path(".debug/program.debug"),
       tree.path("program")});
  Symbolizer symbolizer;

  expect_the_inlined_frames(
      symbolizer.resolve(tree.path("program"), truth().build_id, truth().inlined));
}

// The victim's lines would be those of another program.
TEST(Symbolizer, ReadsNoDebugFileOfAnotherProgram) {
  TempTree tree;
  tree.make_directory(".debug");
  run({"objcopy", "--only-keep-debug", kVictim, tree.path("program.debug")});
  run({"strip", "-o", tree.path("program"), kVictim});
  run({"objcopy", "--add-gnu-debuglink=" + tree.path("program.debug"), tree.path("program")});
  run({"objcopy", "--only-keep-debug", tests::victim_path("leak_by_line"),
       tree.path("program.debug")});
  Symbolizer symbolizer;

  const auto without = symbolizer.resolve(tree.path("program"), truth().build_id, truth().inlined);
  EXPECT_TRUE(without.empty() || !without.front().line);

  // It looks on where the first one does not fit.
  run({"objcopy", "--only-keep-debug", kVictim, tree.path(".debug/program.debug")});
  Symbolizer again;
  expect_the_inlined_frames(again.resolve(tree.path("program"), truth().build_id, truth().inlined));
}

// Of a server's client elfutils loads some twenty libraries.
TEST(Symbolizer, LoadsNoClientWhereNoServerIsNamed) {
  const auto has_client = [] {
    const auto maps = read_file("/proc/self/maps");
    return maps && maps->find("libdebuginfod") != std::string::npos;
  };
  TempTree tree;
  run({"strip", "-o", tree.path("program"), kVictim});
  const bool had_client = has_client();  // by a test before this one
  Symbolizer symbolizer;

  symbolizer.resolve(tree.path("program"), truth().build_id, truth().inlined);

  EXPECT_EQ(has_client(), had_client);
}

TEST(Symbolizer, ReadsTheDebugFileBesideAModuleWhenTheServerIsNotAsked) {
  ::setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1", 1);
  auto server = std::make_shared<DebugServer>();
  ::unsetenv("DEBUGINFOD_URLS");
  server->wait_until(0);
  TempTree tree;
  tree.make_directory(".debug");
  run({"objcopy", "--only-keep-debug", kVictim, tree.path(".debug/program.debug")});
  run({"strip", "-o", tree.path("program"), kVictim});
  run({"objcopy", "--add-gnu-debuglink=" + tree.path(".debug/program.debug"),
       tree.path("program")});
  Symbolizer symbolizer({"", server});

  ASSERT_FALSE(server->begin_search());
  expect_the_inlined_frames(
      symbolizer.resolve(tree.path("program"), truth().build_id, truth().inlined));
}

TEST(DebugServer, IsAskedWhileThereIsTime) {
  ::setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1", 1);
  DebugServer named;
  ::unsetenv("DEBUGINFOD_URLS");
  DebugServer nameless;

  EXPECT_TRUE(named.is_named());
  EXPECT_TRUE(named.begin_search());
  named.wait_until(0);
  nameless.wait_until(0);

  EXPECT_FALSE(named.begin_search());
  EXPECT_FALSE(nameless.is_named());
  EXPECT_TRUE(nameless.begin_search());  // there is nobody to ask: the search is a local one
  EXPECT_EQ(named.problem(), std::nullopt);
}

TEST(Symbolizer, DoesNotUseAFileThatWasReplaced) {
  std::string other = truth().build_id;
  other[0] = other[0] == '0' ? '1' : '0';
  Symbolizer symbolizer;

  const auto frames = symbolizer.resolve(kVictim, other, 0x1234);

  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].function, "symbol_victim+0x1234");
  ASSERT_EQ(symbolizer.problems().size(), 1U);
  EXPECT_EQ(symbolizer.problems()[0].module, kVictim);
  EXPECT_THAT(symbolizer.problems()[0].what, HasSubstr("build-id"));
}

TEST(Symbolizer, GivesModuleAndOffsetWhereThereIsNoFile) {
  Symbolizer symbolizer;

  EXPECT_EQ(symbolizer.resolve("/gone/lib.so (deleted)", "", 0x10).at(0).function,
            "lib.so (deleted)+0x10");
  EXPECT_EQ(symbolizer.resolve("[vdso]", "", 0x20).at(0).function, "[vdso]+0x20");
  EXPECT_EQ(symbolizer.resolve("", "", 0x30).at(0).function, "?+0x30");
  EXPECT_EQ(symbolizer.problems().size(), 3U);
}

TEST(Symbolizer, LooksForModulesBelowARoot) {
  const std::size_t slash = kVictim.rfind('/');
  Symbolizer symbolizer({kVictim.substr(0, slash)});

  expect_the_inlined_frames(
      symbolizer.resolve(kVictim.substr(slash), truth().build_id, truth().inlined));
}

TEST(Symbolizer, LooksBelowTheRootOfTheProcessAskedAbout) {
  const std::size_t slash = kVictim.rfind('/');
  Symbolizer symbolizer({"/proc/4194305/root"});  // has gone
  symbolizer.resolve(kVictim.substr(slash), truth().build_id, truth().hidden);
  ASSERT_EQ(symbolizer.problems().size(), 1U);

  symbolizer.set_root(kVictim.substr(0, slash));

  expect_the_inlined_frames(
      symbolizer.resolve(kVictim.substr(slash), truth().build_id, truth().inlined));
  EXPECT_TRUE(symbolizer.problems().empty());
}

TEST(TraceWorld, TellsOnceAndBrieflyWhichModulesHaveNoNames) {
  const auto world = make_trace_world();
  std::vector<TraceModule> modules = {{0, 0x1000, 0, "[vdso]", ""}};
  std::vector<StackFrame> stack = {{FrameKind::kNative, 0x10, 0}};
  for (std::uint32_t i = 1; i <= 9; ++i) {
    const std::uint64_t begin = std::uint64_t{0x1000} * i;
    modules.push_back({begin, begin + 0x1000, begin, "/gone/lib" + std::to_string(i), ""});
    stack.push_back({FrameKind::kNative, begin + 0x10, i});
  }
  (void)world->name({::getpid(), 0}, stack, modules);

  const auto problems = world->take_problems();

  ASSERT_EQ(problems.size(), 6U);
  EXPECT_THAT(problems[0], HasSubstr("no names of /gone/lib1: "));
  EXPECT_EQ(problems[5], "more modules have no names");
  EXPECT_TRUE(world->take_problems().empty());
}

TEST(Symbolizer, AddressesOutsideTheCodeAreModuleAndOffset) {
  Symbolizer symbolizer;

  for (const std::uint64_t address : {std::uint64_t{0}, ~std::uint64_t{0}}) {
    const auto frames = symbolizer.resolve(kVictim, "", address);
    ASSERT_EQ(frames.size(), 1U);
    EXPECT_THAT(frames[0].function, StartsWith("symbol_victim+0x"));
  }
}

TEST(Symbolizer, IgnoresFilesThatAreNoPrograms) {
  TempTree tree;
  tree.write("text", "no program at all");
  tree.write("empty", "");
  tree.write("magic", std::string("\177ELF\2\1\1") + std::string(200, '\xff'));
  tree.make_directory("folder");
  ASSERT_EQ(::mkfifo(tree.path("pipe").c_str(), 0600), 0);
  Symbolizer symbolizer;

  for (const char* name : {"text", "empty", "magic", "folder", "pipe"}) {
    const auto frames = symbolizer.resolve(tree.path(name), "", 0x40);
    ASSERT_EQ(frames.size(), 1U);
    EXPECT_EQ(frames[0].function, std::string(name) + "+0x40");
  }
  EXPECT_EQ(symbolizer.problems().size(), 5U);
}

TEST(Symbolizer, SurvivesDamagedPrograms) {
  const auto whole = read_file(kVictim);
  ASSERT_TRUE(whole);
  TempTree tree;
  std::minstd_rand random(1);
  Symbolizer symbolizer;

  for (int i = 0; i < 150; ++i) {
    std::string bytes = *whole;
    if (i % 3 == 0) {
      bytes.resize(random() % bytes.size());
    }
    for (int flips = i % 3 == 0 ? 0 : 40; flips > 0 && bytes.size() > 64; --flips) {
      bytes[64 + random() % (bytes.size() - 64)] = static_cast<char>(random());
    }
    const std::string name = "program" + std::to_string(i);
    tree.write(name, bytes);
    EXPECT_FALSE(symbolizer.resolve(tree.path(name), "", truth().inlined).empty());
    EXPECT_FALSE(symbolizer.resolve(tree.path(name), "", truth().hidden).empty());
    tree.remove(name);
  }
}

TEST(Symbolizer, AnswersFromMemoryWhenTheFileIsGone) {
  TempTree tree;
  run({"cp", kVictim, tree.path("program")});
  Symbolizer symbolizer;
  symbolizer.resolve(tree.path("program"), "", truth().inlined);

  tree.remove("program");

  expect_the_inlined_frames(symbolizer.resolve(tree.path("program"), "", truth().inlined));
}

TEST(Symbolizer, ResolvesAStackByItsCalls) {
  const std::vector<TraceModule> modules = {
      {0x400000, 0x500000, 0x400000, kVictim, truth().build_id}};
  const std::vector<StackFrame> stack = {
      {FrameKind::kNative, 0x400000 + truth().inlined + 1, 0},
      {FrameKind::kNative, 0x400000 + truth().hidden + 1, 0},
      {FrameKind::kNative, 0x7f00, std::nullopt},
      {FrameKind::kNative, 0x7f01, 4711},
      {FrameKind::kPython, 7, std::nullopt},
  };
  Symbolizer symbolizer;

  const auto frames = symbolizer.resolve(stack, modules);

  ASSERT_EQ(frames.size(), 7U);
  EXPECT_EQ(frames[0].line, truth().leaf_line);
  EXPECT_EQ(frames[3].line, truth().hidden_line);
  EXPECT_EQ(frames[4].function, "0x7f00");
  EXPECT_EQ(frames[5].function, "0x7f01");
  EXPECT_EQ(frames[6].kind, FrameKind::kPython);
}

}  // namespace
}  // namespace tidemark::reader
