// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/child_environment.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "profiler/tracer/recorder.h"
#include "profiler/tracer/tracer_state.h"
#include "tests/support/in_child.h"
#include "tests/support/temp_tree.h"

namespace tidemark::tracer {
namespace {

using tests::in_child;
using tests::TempTree;

// How the tracer is called here: it is part of the test program.
std::string own_path() {
  Dl_info info = {};
  ::dladdr(reinterpret_cast<void*>(&ChildEnvironment::set_up), &info);
  return info.dli_fname;
}

struct Case {
  const char* flags = "f";
  std::vector<std::string> given;
  bool no_environment = false;
  wire::Mode mode = wire::Mode::kDormant;  // that the process is in by now
  const char* program = "/bin/true";
  const char* preload = nullptr;  // of this process
  bool folder_is_gone = false;
};

// What a program would be started with, in a process that was asked to trace; one entry a line.
std::string environment_for(const Case& asked) {
  const TempTree folder;
  const std::string request = "1:dormant:0:0:" + std::string(asked.flags) + ":" + folder.path();
  std::string result = in_child([&] {
    start_tracer(request.c_str());
    g_recorder.store().header()->control.mode.store(static_cast<std::uint32_t>(asked.mode));
    const std::string preload =
        std::string("LD_PRELOAD=") + (asked.preload == nullptr ? "" : asked.preload);
    char* loaded[] = {const_cast<char*>(preload.c_str()), nullptr};
    ChildEnvironment::set_up(loaded);
    const std::string own = "TIDEMARK_TRACE=" + request;
    std::vector<char*> given;
    for (const std::string& entry : asked.given) {
      given.push_back(const_cast<char*>(entry == "OWN" ? own.c_str() : entry.c_str()));
    }
    given.push_back(nullptr);
    char* const* const environment = asked.no_environment ? nullptr : given.data();
    if (asked.folder_is_gone) {
      std::filesystem::remove_all(folder.path());
    }
    const ChildEnvironment child(asked.program, environment);
    std::vector<char*> entries(child.entries());
    std::string room(child.text_bytes(), '?');
    char* const* const made = child.fill(entries.data(), room.data());
    if (made == nullptr) {
      return std::string("none");
    }
    std::string text = made == environment ? "(as given)\n" : "";
    for (char* const* entry = made; *entry != nullptr; ++entry) {
      text += std::string(*entry) + "\n";
    }
    return text;
  });
  // The folder is another one each time.
  for (std::size_t at = 0; (at = result.find(folder.path())) != std::string::npos;) {
    result.replace(at, folder.path().size(), "FOLDER");
  }
  for (std::size_t at = 0; (at = result.find(own_path())) != std::string::npos;) {
    result.replace(at, own_path().size(), "TRACER");
  }
  return result;
}

constexpr char kRequest[] = "TIDEMARK_TRACE=1:dormant:0:0:f:FOLDER\n";

TEST(ChildEnvironment, PutsTheTracerIntoACleanOne) {
  EXPECT_EQ(environment_for({"f", {"A=1", "B=2"}}),
            std::string("A=1\nB=2\nLD_PRELOAD=TRACER\n") + kRequest);
}

TEST(ChildEnvironment, PutsTheTracerIntoAnEmptyOne) {
  EXPECT_EQ(environment_for({"f", {}}), std::string("LD_PRELOAD=TRACER\n") + kRequest);
}

TEST(ChildEnvironment, MakesOneWhereThereIsNone) {
  EXPECT_EQ(environment_for({"f", {}, true}), std::string("LD_PRELOAD=TRACER\n") + kRequest);
}

TEST(ChildEnvironment, KeepsOtherLibrariesBehindTheTracer) {
  EXPECT_EQ(environment_for({"f", {"LD_PRELOAD=one.so two.so:three.so", "A=1"}}),
            std::string("A=1\nLD_PRELOAD=TRACER:one.so:two.so:three.so\n") + kRequest);
}

// It would not call the tracer.
TEST(ChildEnvironment, PutsTheTracerBeforeAnotherAllocator) {
  EXPECT_EQ(environment_for({"f", {"LD_PRELOAD=/lib/libjemalloc.so.2:" + own_path(), "OWN"}}),
            std::string("LD_PRELOAD=TRACER:/lib/libjemalloc.so.2\n") + kRequest);
  EXPECT_EQ(environment_for({"f", {"LD_PRELOAD=/jemalloc/libz.so:" + own_path(), "OWN"}}),
            std::string("(as given)\nLD_PRELOAD=/jemalloc/libz.so:TRACER\n") + kRequest);
}

constexpr char kOperators[] = "/there/libtidemark_operators.so";

std::string preload_for(const char* program, const std::vector<std::string>& given) {
  Case asked = {"f", given};
  asked.program = program;
  asked.preload = kOperators;
  const std::string all = environment_for(asked);
  return all.substr(0, all.find('\n'));
}

TEST(ChildEnvironment, HasTheOperatorsBesideAnAllocator) {
  EXPECT_EQ(preload_for("/bin/true", {"LD_PRELOAD=libjemalloc.so.2"}),
            "LD_PRELOAD=TRACER:" + std::string(kOperators) + ":libjemalloc.so.2");
}

// Python would not find another operator new behind them.
TEST(ChildEnvironment, HasNoOperatorsInAnotherProgram) {
  EXPECT_EQ(preload_for("/bin/true", {}), "LD_PRELOAD=TRACER");
  EXPECT_EQ(preload_for("true", {}), "LD_PRELOAD=TRACER");
  EXPECT_EQ(preload_for("/nowhere", {}), "LD_PRELOAD=TRACER");
  EXPECT_EQ(preload_for("", {"LD_PRELOAD=" + own_path() + ":" + kOperators}), "LD_PRELOAD=TRACER");
}

TEST(ChildEnvironment, KeepsTheOperatorsWhereTheProgramStartsItselfAgain) {
  const std::string with = "LD_PRELOAD=TRACER:" + std::string(kOperators);

  EXPECT_EQ(preload_for("/proc/self/exe", {}), with);
  EXPECT_EQ(preload_for(program_invocation_short_name, {}), with);
}

TEST(ChildEnvironment, LeavesAloneWhatIsThere) {
  const std::vector<std::string> given = {"LD_PRELOAD=" + own_path() + ":x.so",
                                          "TIDEMARK_TRACE=1:exact:0:0::/elsewhere", "A=1"};

  EXPECT_EQ(environment_for({"f", given}),
            "(as given)\nLD_PRELOAD=TRACER:x.so\nTIDEMARK_TRACE=1:exact:0:0::/elsewhere\nA=1\n");
}

TEST(ChildEnvironment, LeavesItsOwnRequestAlone) {
  EXPECT_EQ(environment_for({"f", {"LD_PRELOAD=" + own_path(), "OWN"}}),
            std::string("(as given)\nLD_PRELOAD=TRACER\n") + kRequest);
}

TEST(ChildEnvironment, PassesTheModeThatTheProcessIsInNow) {
  constexpr char kNow[] = "TIDEMARK_TRACE=1:exact:0:0:f:FOLDER\n";
  const Case asked = {"f", {"LD_PRELOAD=" + own_path(), "OWN", "A=1"}, false, wire::Mode::kExact};

  EXPECT_EQ(environment_for(asked), std::string("A=1\nLD_PRELOAD=TRACER\n") + kNow);
  EXPECT_EQ(environment_for({"f", {"A=1"}, false, wire::Mode::kExact}),
            std::string("A=1\nLD_PRELOAD=TRACER\n") + kNow);
}

TEST(ChildEnvironment, DoesNotPassAnInvalidMode) {
  EXPECT_EQ(environment_for({"f", {"A=1"}, false, wire::Mode::kSampled}),  // every 0 bytes
            std::string("A=1\nLD_PRELOAD=TRACER\n") + kRequest);
  EXPECT_EQ(environment_for({"f", {"A=1"}, false, static_cast<wire::Mode>(77)}),
            std::string("A=1\nLD_PRELOAD=TRACER\n") + kRequest);
}

TEST(ChildEnvironment, AnotherRequestStaysInAnyMode) {
  const std::vector<std::string> given = {"LD_PRELOAD=" + own_path(),
                                          "TIDEMARK_TRACE=1:sampled:9:0::/elsewhere"};

  EXPECT_EQ(environment_for({"f", given, false, wire::Mode::kExact}),
            "(as given)\nLD_PRELOAD=TRACER\nTIDEMARK_TRACE=1:sampled:9:0::/elsewhere\n");
}

TEST(ChildEnvironment, TheTracerIsThereOnceEvenWithoutARequest) {
  EXPECT_EQ(environment_for({"f", {"LD_PRELOAD=x.so:" + own_path()}}),
            std::string("LD_PRELOAD=TRACER:x.so\n") + kRequest);
}

TEST(ChildEnvironment, RemovesTheTracerWhereChildrenAreNotFollowed) {
  EXPECT_EQ(
      environment_for(
          {"", {"LD_PRELOAD=" + own_path() + ":x.so", "TIDEMARK_TRACE=1:exact:0:0::/", "A=1"}}),
      "A=1\nLD_PRELOAD=x.so\n");
  EXPECT_EQ(environment_for({"", {"LD_PRELOAD=" + own_path(), "TIDEMARK_TRACE=x", "A=1"}}),
            "A=1\n");
}

// After chroot, say, or as another user.
TEST(ChildEnvironment, HasNoTracerWhereItsFolderCannotBeReached) {
  Case asked = {"f", {"LD_PRELOAD=" + own_path() + ":x.so", "OWN", "A=1"}};
  asked.folder_is_gone = true;
  EXPECT_EQ(environment_for(asked), "A=1\nLD_PRELOAD=x.so\n");

  asked.given = {"A=1"};
  EXPECT_EQ(environment_for(asked), "(as given)\nA=1\n");
}

TEST(ChildEnvironment, HasNoTracerForAProgramOf32Bits) {
  const TempTree folder;
  folder.write("program", std::string("\x7f"
                                      "ELF\x01",
                                      5));
  const std::string program = folder.path("program");
  Case asked = {"f", {"A=1"}};
  asked.program = program.c_str();

  EXPECT_EQ(environment_for(asked), "(as given)\nA=1\n");
}

// Another run traces that program; its folder is not ours.
TEST(ChildEnvironment, LeavesAnotherRequestAloneAlsoWithoutAFolder) {
  Case asked = {"f", {"LD_PRELOAD=" + own_path(), "TIDEMARK_TRACE=1:exact:0:0::/elsewhere"}};
  asked.folder_is_gone = true;

  EXPECT_EQ(environment_for(asked),
            "(as given)\nLD_PRELOAD=TRACER\nTIDEMARK_TRACE=1:exact:0:0::/elsewhere\n");
}

TEST(ChildEnvironment, NamesThatOnlyBeginAlikeAreOthers) {
  EXPECT_EQ(
      environment_for({"f", {"LD_PRELOAD_X=1", "TIDEMARK_TRACER=2", "LD_PRELOAD"}}),
      std::string("LD_PRELOAD_X=1\nTIDEMARK_TRACER=2\nLD_PRELOAD\nLD_PRELOAD=TRACER\n") + kRequest);
}

TEST(ChildEnvironment, AHugeOneIsPassedUnchanged) {
  const std::vector<std::string> many(25'000, "A=1");

  EXPECT_TRUE(environment_for({"f", many}).starts_with("(as given)\n"));
}

TEST(ChildEnvironment, ALargeOneIsCompleted) {
  const std::vector<std::string> many(15'000, "A=1");

  const std::string made = environment_for({"f", many});

  EXPECT_EQ(made.size(), many.size() * 4 + std::string("LD_PRELOAD=TRACER\n").size() +
                             std::string(kRequest).size());
}

TEST(ChildEnvironment, APreloadThatDoesNotFitIsPassedUnchanged) {
  EXPECT_TRUE(
      environment_for({"f", {"LD_PRELOAD=" + std::string(9000, 'x')}}).starts_with("(as given)\n"));
}

TEST(TracerState, StaysOffWithoutARequest) {
  EXPECT_EQ(in_child([] {
              start_tracer(nullptr);
              return std::string(can_record() ? "ready" : "off") +
                     (follows_children() ? " follows" : "");
            }),
            "off");
}

TEST(TracerState, AForkedChildHasTheModeOfItsParent) {
  const TempTree folder;
  const std::string request = "1:dormant:0:0:f:" + folder.path();

  EXPECT_EQ(in_child([&] {
              start_tracer(request.c_str());
              wire::Control& control = g_recorder.store().header()->control;
              control.sample_every_bytes.store(1234);
              control.mode.store(static_cast<std::uint32_t>(wire::Mode::kSampled));
              return in_child([] {
                if (!can_record()) {
                  return std::string("off");
                }
                const wire::Control& own = g_recorder.store().header()->control;
                return std::to_string(own.mode) + " " + std::to_string(own.sample_every_bytes);
              });
            }),
            "1 1234");
}

TEST(TracerState, StartsOnce) {
  const TempTree folder;
  const std::string request = "1:exact:0:0:f:" + folder.path();

  EXPECT_EQ(in_child([&] {
              const bool before = can_record();
              start_tracer(request.c_str());
              start_tracer(nullptr);
              return std::string(before ? "early " : "") + (can_record() ? "ready" : "off") +
                     (follows_children() ? " follows" : "");
            }),
            "ready follows");
}

}  // namespace
}  // namespace tidemark::tracer
