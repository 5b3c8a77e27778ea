// SPDX-License-Identifier: Apache-2.0
// The thread of the probe in this process, with functions that stand in for those of allocators and
// of Python.
#include "profiler/probe/probe.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace tidemark::probe {
namespace {

using wire::ProbeControl;
using wire::ProbeOutcome;
using wire::ProbeResult;
using wire::ProbeStage;
using wire::ProbeTask;

constexpr std::uint64_t kMs = 1'000'000;

bool wait_until(const std::function<bool()>& is_so) {
  for (int i = 0; i < 20'000 && !is_so(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return is_so();
}

template <typename Function>
std::uint64_t address_of(Function* function) {
  return reinterpret_cast<std::uint64_t>(function);
}

// What the stand-ins do, and have seen.
struct World {
  std::atomic<int> trims = 0;
  std::atomic<bool> has_signals = true;
  std::vector<std::string> purged;
  bool has_new_jemalloc = true;

  std::atomic<bool> is_locked = false;  // the interpreter
  std::atomic<bool> is_exiting = false;
  std::atomic<int> held = 0;
  std::vector<std::string> calls;
  std::vector<long long> found;  // by the collector, one after the other
  bool has_torch = true;
  bool is_cuda_used = true;
  bool has_pinned_cache = true;
  bool raises = false;
  int references = 0;
};
World* g_world = nullptr;

int trim(std::size_t /*keep*/) {
  sigset_t blocked = {};
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  g_world->has_signals = sigismember(&blocked, SIGTERM) == 0 || sigismember(&blocked, SIGSEGV) == 1;
  ++g_world->trims;
  return 1;
}

int control_jemalloc(const char* name, void* old, std::size_t* bytes, void* /*next*/,
                     std::size_t /*next_bytes*/) {
  g_world->purged.emplace_back(name);
  if (std::string(name) == "arenas.narenas") {
    const unsigned arenas = 120;
    std::memcpy(old, &arenas, *bytes);
    return 0;
  }
  return std::string(name) == "arena.4096.purge" && !g_world->has_new_jemalloc ? 2 : 0;
}

// Objects are numbers; those that are not named here are what the methods return.
enum Object : std::uintptr_t { kNothing, kGc = 100, kTorch, kCuda, kInternals, kHostMethod, kTrue };
constexpr std::uintptr_t kFirstNumber = 1000;

void* made(std::uintptr_t object) {
  g_world->references += object == kNothing ? 0 : 1;
  return reinterpret_cast<void*>(object);
}
int ensure() {
  while (g_world->is_locked) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (g_world->is_exiting) {
    pthread_exit(nullptr);
  }
  ++g_world->held;
  return 7;
}
void release(int state) { g_world->held -= state == 7 ? 1 : 100; }
int is_initialized() { return 1; }
void* import_module(const char* /*name*/) { return made(kGc); }
void* module_dict() { return reinterpret_cast<void*>(1); }
void* dict_get(void* /*modules*/, const char* /*name*/) {
  return reinterpret_cast<void*>(g_world->has_torch ? kTorch : kNothing);
}
void* call_method(void* object, const char* name, const char* /*format*/, ...) {
  g_world->calls.emplace_back(name);
  const std::string method = name;
  if (g_world->raises && (method == "collect" || method == "empty_cache")) {
    return nullptr;
  }
  if (method == "is_initialized") {
    return made(g_world->is_cuda_used ? kTrue : kFirstNumber);
  }
  if (method == "collect") {
    const long long found = g_world->found.front();
    g_world->found.erase(g_world->found.begin());
    return made(kFirstNumber + static_cast<std::uintptr_t>(found));
  }
  if (method == "device_count") {
    return made(kFirstNumber + 2);
  }
  if (method == "memory_reserved") {
    const auto calls = std::count(g_world->calls.begin(), g_world->calls.end(), "empty_cache");
    return made(kFirstNumber + (calls == 0 ? 500 : 200));
  }
  return made(object == nullptr ? kNothing : kFirstNumber);
}
void* get_attribute(void* object, const char* name) {
  const std::string attribute = name;
  return made(attribute == "cuda" ? kCuda
              : attribute == "_C" ? kInternals
              : g_world->has_pinned_cache && object == reinterpret_cast<void*>(kInternals)
                  ? kHostMethod
                  : kNothing);
}
int is_true(void* object) { return object == reinterpret_cast<void*>(kTrue) ? 1 : 0; }
long long as_long(void* object) {
  return static_cast<long long>(reinterpret_cast<std::uintptr_t>(object) - kFirstNumber);
}
void add_reference(void* /*object*/) { ++g_world->references; }
void drop_reference(void* /*object*/) { --g_world->references; }
void clear_error() {}
void* interpreter() { return reinterpret_cast<void*>(1); }

wire::ProbePython python() {
  wire::ProbePython python = {};
  python.is_initialized = address_of(is_initialized);
  python.ensure = address_of(ensure);
  python.release = address_of(release);
  python.import_module = address_of(import_module);
  python.module_dict = address_of(module_dict);
  python.dict_get = address_of(dict_get);
  python.call_method = address_of(call_method);
  python.get_attribute = address_of(get_attribute);
  python.is_true = address_of(is_true);
  python.as_long = address_of(as_long);
  python.add_reference = address_of(add_reference);
  python.drop_reference = address_of(drop_reference);
  python.clear_error = address_of(clear_error);
  python.first_interpreter = python.main_interpreter = address_of(interpreter);
  return python;
}

class ProbeThread : public testing::Test {
 protected:
  void SetUp() override {
    g_world = &world_;
    control_.version = wire::kProbeVersion;
    control_.most_idle_ns = 60'000 * kMs;
    ASSERT_EQ(start(control_), 0);
  }
  void TearDown() override {
    world_.is_locked = false;
    control_.is_to_end = 1;
    ASSERT_TRUE(wait_until([&] { return control_.stage.load() == ProbeStage::kNoThread; }));
  }

  void ask(ProbeTask task, std::uint64_t function = 0, std::uint64_t most_wait_ns = 60'000 * kMs) {
    control_.order = {task, function, most_wait_ns, python()};
    control_.asked = static_cast<std::uint8_t>(control_.asked + 1);
  }
  const ProbeOutcome& outcome() {
    EXPECT_TRUE(wait_until([&] { return control_.answered.load() == control_.asked.load(); }));
    return control_.outcome;
  }

  World world_;
  ProbeControl control_ = {};
};

TEST_F(ProbeThread, CallsAnAllocator) {
  ask(ProbeTask::kTrim, address_of(trim));

  EXPECT_EQ(outcome().result, ProbeResult::kDone);
  EXPECT_EQ(outcome().value, 1);
  EXPECT_EQ(world_.trims, 1);
}

// But for those that it would raise itself.
TEST_F(ProbeThread, GetsNoSignalsOfTheProcess) {
  ask(ProbeTask::kTrim, address_of(trim));

  outcome();
  EXPECT_FALSE(world_.has_signals);
}

TEST_F(ProbeThread, TakesOneOrderAfterTheOther) {
  for (int i = 0; i < 300; ++i) {
    control_.asked = control_.asked == 255 ? 0 : control_.asked.load();
    ask(ProbeTask::kTrim, address_of(trim));
    outcome();
  }

  EXPECT_EQ(world_.trims, 300);
}

TEST_F(ProbeThread, PurgesAllArenasOfJemalloc) {
  ask(ProbeTask::kJemalloc, address_of(control_jemalloc));

  EXPECT_EQ(outcome().result, ProbeResult::kDone);
  EXPECT_EQ(world_.purged, std::vector<std::string>{"arena.4096.purge"});
}

// Before version 5 the number of arenas stood for all of them.
TEST_F(ProbeThread, PurgesAllArenasOfAnOldJemalloc) {
  world_.has_new_jemalloc = false;
  ask(ProbeTask::kJemalloc, address_of(control_jemalloc));

  EXPECT_EQ(outcome().result, ProbeResult::kDone);
  EXPECT_EQ(world_.purged,
            (std::vector<std::string>{"arena.4096.purge", "arenas.narenas", "arena.120.purge"}));
}

TEST_F(ProbeThread, CollectsOnceMoreWhereSomethingWasFound) {
  world_.found = {40, 2};
  ask(ProbeTask::kGc);

  EXPECT_EQ(outcome().result, ProbeResult::kDone);
  EXPECT_EQ(outcome().objects, 42);
  EXPECT_EQ(world_.calls, (std::vector<std::string>{"collect", "collect", "get_freeze_count"}));
  EXPECT_EQ(world_.held, 0);
  EXPECT_EQ(world_.references, 0);
}

TEST_F(ProbeThread, CollectsOnceWhereNothingWasFound) {
  world_.found = {0};
  ask(ProbeTask::kGc);

  EXPECT_EQ(outcome().objects, 0);
  EXPECT_EQ(world_.calls, (std::vector<std::string>{"collect", "get_freeze_count"}));
}

TEST_F(ProbeThread, SurvivesAnException) {
  world_.raises = true;
  ask(ProbeTask::kGc);

  EXPECT_EQ(outcome().result, ProbeResult::kRaised);
  EXPECT_EQ(world_.held, 0);
}

TEST_F(ProbeThread, EmptiesTheCachesOfTorch) {
  ask(ProbeTask::kCuda);

  EXPECT_EQ(outcome().result, ProbeResult::kDone);
  EXPECT_EQ(outcome().gpu_before_bytes, 1000);
  EXPECT_EQ(outcome().gpu_after_bytes, 400);
  EXPECT_TRUE(outcome().has_emptied_pinned);
  EXPECT_EQ(world_.references, 0);
}

TEST_F(ProbeThread, SaysThatATorchHasNoCacheOfPinnedMemory) {
  world_.has_pinned_cache = false;
  ask(ProbeTask::kCuda);

  EXPECT_EQ(outcome().result, ProbeResult::kDone);
  EXPECT_FALSE(outcome().has_emptied_pinned);
  EXPECT_EQ(world_.references, 0);
}

TEST_F(ProbeThread, InitialisesNoGpu) {
  world_.is_cuda_used = false;
  ask(ProbeTask::kCuda);

  EXPECT_EQ(outcome().result, ProbeResult::kNoCuda);
  EXPECT_EQ(world_.calls, std::vector<std::string>{"is_initialized"});
}

TEST_F(ProbeThread, ImportsNoTorch) {
  world_.has_torch = false;
  ask(ProbeTask::kCuda);

  EXPECT_EQ(outcome().result, ProbeResult::kNoTorch);
  EXPECT_TRUE(world_.calls.empty());
}

// The order waits for the interpreter, and the tool gives up meanwhile.
TEST_F(ProbeThread, DoesNothingThatWasWithdrawn) {
  world_.is_locked = true;
  ask(ProbeTask::kGc);
  ASSERT_TRUE(wait_until([&] { return control_.stage.load() == ProbeStage::kWaiting; }));
  control_.withdrawn = control_.asked.load();
  world_.is_locked = false;

  EXPECT_EQ(outcome().result, ProbeResult::kWithdrawn);
  EXPECT_TRUE(world_.calls.empty());
  EXPECT_EQ(world_.held, 0);
}

TEST_F(ProbeThread, WithdrawsByItselfWhatHasWaitedForTooLong) {
  world_.is_locked = true;
  ask(ProbeTask::kGc, 0, /*most_wait_ns=*/1);
  ASSERT_TRUE(wait_until([&] { return control_.stage.load() == ProbeStage::kWaiting; }));
  world_.is_locked = false;

  EXPECT_EQ(outcome().result, ProbeResult::kWithdrawn);
  EXPECT_TRUE(world_.calls.empty());
}

// Nobody is left to withdraw it.
TEST_F(ProbeThread, DoesNothingForAToolThatWasKilledMeanwhile) {
  control_.most_idle_ns = 1000 * kMs;
  world_.is_locked = true;
  ask(ProbeTask::kGc);
  ASSERT_TRUE(wait_until([&] { return control_.stage.load() == ProbeStage::kWaiting; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
  world_.is_locked = false;

  EXPECT_EQ(outcome().result, ProbeResult::kWithdrawn);
  EXPECT_TRUE(world_.calls.empty());
}

TEST_F(ProbeThread, EndsWhereTheToolIsNotHeardOfAndStartsAgain) {
  control_.most_idle_ns = 1;
  ASSERT_TRUE(wait_until([&] { return control_.stage.load() == ProbeStage::kNoThread; }));

  control_.most_idle_ns = 60'000 * kMs;
  ASSERT_EQ(start(control_), 0);

  ask(ProbeTask::kTrim, address_of(trim));
  outcome();
  EXPECT_EQ(world_.trims, 1);
}

TEST_F(ProbeThread, IsOneHoweverOftenItIsStarted) {
  ASSERT_EQ(start(control_), 0);
  ASSERT_EQ(start(control_), 0);
  ask(ProbeTask::kTrim, address_of(trim));

  outcome();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(world_.trims, 1);
}

// An interpreter that exits ends threads that wait for it.
TEST_F(ProbeThread, CanBeStartedAgainAfterAnInterpreterHasEndedIt) {
  world_.is_exiting = true;
  ask(ProbeTask::kGc);
  ASSERT_TRUE(wait_until([&] { return control_.stage.load() == ProbeStage::kNoThread; }));

  ASSERT_EQ(start(control_), 0);

  ask(ProbeTask::kTrim, address_of(trim));
  outcome();
  EXPECT_EQ(world_.trims, 1);
}

TEST_F(ProbeThread, LeavesErrnoAsItIs) {
  errno = EXDEV;
  ASSERT_EQ(start(control_), 0);
  EXPECT_EQ(errno, EXDEV);
}

}  // namespace
}  // namespace tidemark::probe
