// SPDX-License-Identifier: Apache-2.0
// Which line of a stack with frames of Python is the user's, and what it calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/tracker/traced_run.h"
#include "tracker/sites/frame_text.h"
#include "tracker/sites/site_ranking.h"

namespace tidemark::tracker {
namespace {

using testing::ElementsAre;
using tests::constant;
using tests::kSiteMiB;
using tests::rising;
using tests::SiteRun;
using tests::trainer_record;

const std::string kTorch = "/v/lib/python3.11/site-packages/torch/";

class PythonLines : public testing::Test {
 protected:
  using Frames = std::vector<std::uint32_t>;

  std::uint32_t native(const std::string& function,
                       const std::string& module = "/usr/lib/libtorch_cpu.so") {
    return run_.add_frame(function, "", {}, module);
  }
  std::uint32_t python(const std::string& function, const std::string& file,
                       std::uint32_t line = 42) {
    return run_.add_python(function, file, line);
  }
  std::uint32_t interpreter(const std::string& function) {
    return native(function, "/usr/bin/python3.11");
  }
  // What stands for a stack of these frames, innermost first.
  std::string line_of(const Frames& frames, std::size_t columns = 100) {
    SiteRun run = run_;
    run.add_process(trainer_record());
    run.add_site(trainer_record().key, frames, constant(1));
    const RunSites sites = built(run, 2);
    const ShownStack stack = shown_stack(sites, frames);
    const auto lines = own_lines(sites, frames);
    return headline(stack, lines.empty() ? "" : lines.front(), columns);
  }

  SiteRun run_;
};

TEST_F(PythonLines, AreThoseOfTheUserNotOfALibrary) {
  const auto op = native("at::_ops::stack::call(c10::ArrayRef<at::Tensor>, long)+0x1c");
  const auto stack = python("stack", kTorch + "functional.py", 512);
  const auto collate = python("collate", "/home/me/train.py", 42);
  const auto fetch = python("_MapDatasetFetcher.fetch", kTorch + "utils/data/fetch.py");
  const auto main = python("<module>", "/home/me/train.py", 99);

  EXPECT_EQ(line_of({op, stack, collate, fetch, main}),
            "train.py:42 in collate calling torch.functional.stack");
}

TEST_F(PythonLines, NameTheNativeFunctionThatPythonCalls) {
  const auto alloc = native("c10::alloc_cpu(unsigned long)+0x8e", "/usr/lib/libc10.so");
  const auto op = native("at::_ops::cat::call(c10::IListRef<at::Tensor> const&, long)+0x1c");
  const auto binding = native("torch::autograd::THPVariable_cat(_object*, _object*)+0x9");
  const auto call = interpreter("cfunction_call+0x30");
  const auto own = python("step", "/home/me/train.py");

  EXPECT_EQ(line_of({alloc, op, binding, call, own}), "train.py:42 in step calling at::_ops::cat");
  EXPECT_EQ(line_of({alloc, binding, call, own}),
            "train.py:42 in step calling torch::autograd::THPVariable_cat");
  EXPECT_EQ(line_of({interpreter("list_resize+0x1"), interpreter("list_append+0x1"), own}),
            "train.py:42 in step calling list.append");
  EXPECT_EQ(line_of({native("_pickle.so+0x12", "/v/site-packages/x/_pickle.so"), own}),
            "train.py:42 in step calling x");
  EXPECT_EQ(line_of({native("void at::native::fill<float>(at::Tensor&)+0x1"), own}),
            "train.py:42 in step calling void at::native::fill");
  EXPECT_EQ(line_of({native("(anonymous namespace)::decode(int)+0x1"), own}),
            "train.py:42 in step calling (anonymous namespace)::decode");
  EXPECT_EQ(line_of({native("malloc+0x1", "/lib/libc.so.6"), own}), "train.py:42 in step");
}

// The functions of the interpreter have names that only its developers know.
TEST_F(PythonLines, CallTypesAndFunctionsAsPythonDoes) {
  const auto own = python("step", "/home/me/train.py");
  const auto make = interpreter("_PyObject_MakeTpCall+0x1c4");
  const auto type = interpreter("type_call+0x12");
  const auto nameless = interpreter("python3.11+0x596b7c (after PyVectorcall_Function)");
  const auto resize = interpreter("PyByteArray_Resize+0x1e4");

  EXPECT_EQ(line_of({resize, interpreter("bytearray___init__+0x9"), type, make, own}),
            "train.py:42 in step calling bytearray");
  EXPECT_EQ(line_of({resize, nameless, make, own}), "train.py:42 in step calling bytearray");
  EXPECT_EQ(line_of({type, make, own}), "train.py:42 in step");
  EXPECT_EQ(line_of({interpreter("slot_tp_init+0x1"), type, make, own}), "train.py:42 in step");
  EXPECT_EQ(line_of({interpreter("_PyUnicode_JoinArray+0x1"), own}),
            "train.py:42 in step calling str");
  EXPECT_EQ(line_of({interpreter("builtin_sorted.isra.0+0x1"), own}),
            "train.py:42 in step calling sorted");
  EXPECT_EQ(line_of({interpreter("dict_setdefault_impl+0x1"), own}),
            "train.py:42 in step calling dict.setdefault");
}

TEST_F(PythonLines, NameWhatIsCalledThroughCtypes) {
  const auto own = python("step", "/home/me/train.py");
  const auto ffi = native("ffi_call+0x1", "/lib/x86_64-linux-gnu/libffi.so.8");
  const auto ctypes = native("PyCFuncPtr_call+0x1", "/usr/lib/python3.11/lib-dynload/_ctypes.so");

  EXPECT_EQ(line_of({native("decode+0x9", "/usr/lib/libdecode.so"), ffi, ctypes, own}),
            "train.py:42 in step calling decode");
  EXPECT_EQ(line_of({ffi, ctypes, own}), "train.py:42 in step");
}

TEST_F(PythonLines, NameThePackageOfAModuleWithoutNames) {
  const std::string module =
      "/usr/lib/python3/dist-packages/numpy/core/_multiarray_umath.cpython-311-x86_64.so";
  EXPECT_EQ(line_of({native("_multiarray_umath.cpython-311-x86_64.so+0x12", module),
                     python("step", "/home/me/train.py")}),
            "train.py:42 in step calling numpy");
}

TEST_F(PythonLines, ShortenTheNamesOfExtensions) {
  const auto text_of = [&](const std::string& name) {
    const Frames frames = {native(name + "+0x12", "/usr/lib/python3/dist-packages/" + name)};
    return frame_text(frames_of(built(run_, 2), frames).at(0), 100);
  };

  EXPECT_EQ(text_of("_umath.cpython-311-x86_64-linux-gnu.so"), "_umath.so+0x12 [_umath.so]");
  EXPECT_EQ(text_of("_rust.abi3.so"), "_rust.so+0x12 [_rust.so]");
  EXPECT_EQ(text_of("libc10.so.1.13"), "libc10.so.1.13+0x12 [libc10.so.1.13]");
}

TEST_F(PythonLines, TellAnArenaOfSmallObjects) {
  run_.add_process(trainer_record());
  const Frames frames = {interpreter("python3.11+0x12"), python("step", "/home/me/train.py")};
  run_.add_site(trainer_record().key, frames, constant(1));
  const RunSites sites = built(run_, 2);
  RankedSite site;
  site.frames = frames;
  site.kind = AllocationKind::kAnonymousMap;
  site.alloc_blocks = 3;
  site.alloc_bytes = 3U << 20U;
  const auto text = [&] { return headline(shown_stack(sites, site), "", 100); };

  EXPECT_EQ(text(), "train.py:42 in step (arena of small objects)");
  site.alloc_bytes += 4096;
  EXPECT_EQ(text(), "train.py:42 in step");
  site.alloc_bytes = 3U << 18U;  // as 3.9 has them
  EXPECT_EQ(text(), "train.py:42 in step (arena of small objects)");
  site.kind = AllocationKind::kHeap;
  EXPECT_EQ(text(), "train.py:42 in step");
}

TEST_F(PythonLines, NameAnImport) {
  const auto load = python("_find_and_load", "<frozen importlib._bootstrap>", 1000);
  const auto torch = python("<module>", kTorch + "__init__.py", 3);
  const auto own = python("<module>", "/home/me/train.py", 1);

  EXPECT_EQ(line_of({torch, load, load, own}), "train.py:1 in <module> importing torch");
  EXPECT_EQ(line_of({load, load, own}), "train.py:1 in <module> importing a module");
}

// The innermost frame that is the user's wins, of Python or native with a source line.
TEST_F(PythonLines, GiveWayToTheUsersOwnExtension) {
  const auto decode = run_.add_frame("decode(char*)", "/home/me/ext/decode.cpp", 7,
                                     "/home/me/ext/decode.cpython-311.so");
  const auto nameless = native("decode.so+0x12", "/home/me/ext/decode.so");
  const auto collate = python("collate", "/home/me/train.py");

  EXPECT_EQ(line_of({decode, collate}), "decode(char*) decode.cpp:7");
  EXPECT_EQ(line_of({nameless, collate}), "train.py:42 in collate calling decode");
}

TEST_F(PythonLines, DoNotTakeTheInterpreterForAnExtensionOfTheUser) {
  const std::string home = "/home/me/.pyenv/versions/3.11.7/";
  const auto list = run_.add_frame("list_resize", "/tmp/python-build/Objects/listobject.c", 7,
                                   home + "bin/python3.11");
  const auto pickle = run_.add_frame("save", "/tmp/python-build/Modules/_pickle.c", 7,
                                     home + "lib/python3.11/lib-dynload/_pickle.so");
  const auto dump = python("dump", home + "lib/python3.11/pickle.py", 7);
  const auto own = python("save", "/home/me/train.py");

  EXPECT_EQ(line_of({list, own}), "train.py:42 in save calling list");
  EXPECT_EQ(line_of({pickle, dump, own}), "train.py:42 in save calling pickle.dump");
}

TEST_F(PythonLines, AreTheInnermostWhereNothingIsTheUsers) {
  const auto op = native("at::_ops::empty::call()+0x1");
  const auto inner = python("_lazy_init", kTorch + "cuda/__init__.py", 5);
  const auto outer = python("Thread.run", "/usr/lib/python3.11/threading.py", 9);

  EXPECT_EQ(line_of({op, inner, outer}),
            "torch/cuda/__init__.py:5 in _lazy_init calling at::_ops::empty");
}

TEST_F(PythonLines, PassGeneratedCodeOver) {
  const auto init = python("__create_fn__.<locals>.__init__", "<string>", 2);
  const auto graph = python("forward", "<eval_with_key>.12", 5);
  const auto compiled = python("call", "/tmp/torchinductor_me/ab/cabcd.py", 70);
  const auto own = python("step", "/home/me/train.py");

  EXPECT_EQ(line_of({init, own}), "train.py:42 in step calling __init__ in <dataclass>");
  EXPECT_EQ(line_of({compiled, graph, own}),
            "train.py:42 in step calling forward in <torch.fx graph 12>");
  EXPECT_EQ(line_of({python("f", "<string>", 3), own}),
            "train.py:42 in step calling f in <string>");
}

TEST_F(PythonLines, AreInTheStringThatIsTheProgram) {
  const auto module = python("<module>", "<string>", 9);
  const auto keep = python("keep", "<string>", 3);
  const auto stack = python("stack", kTorch + "functional.py");
  const auto user = python("loop", "/home/me/job.py");
  const auto spawn = python("spawn_main", "/usr/lib/python3.11/multiprocessing/spawn.py");
  const auto thread = python("Thread.run", "/usr/lib/python3.11/threading.py");

  EXPECT_EQ(line_of({stack, keep, user, module}),
            "<string>:3 in keep calling torch.functional.stack");
  EXPECT_EQ(line_of({stack, module}), "<string>:9 in <module> calling torch.functional.stack");
  EXPECT_EQ(line_of({stack, keep, thread}), "<string>:3 in keep calling torch.functional.stack");
  EXPECT_EQ(line_of({stack, spawn, module}), "torch/functional.py:42 in stack");
  EXPECT_EQ(line_of({stack, keep, user, spawn, module}),
            "job.py:42 in loop calling keep in <string>");
}

TEST_F(PythonLines, AreInNotebooks) {
  const auto stack = python("stack", kTorch + "functional.py");

  EXPECT_EQ(line_of({stack, python("<module>", "<ipython-input-3-ab>", 2)}),
            "In[3]:2 in <module> calling torch.functional.stack");
  EXPECT_EQ(line_of({stack, python("f", "/tmp/ipykernel_9/77.py", 2)}),
            "notebook cell 77:2 in f calling torch.functional.stack");
}

TEST_F(PythonLines, KeepPythonFunctionsThatAreNamedLikeAllocators) {
  const auto own = python("mmap", "/home/me/train.py");
  const auto start = python("_start", "/home/me/train.py", 50);

  EXPECT_EQ(line_of({own, start}), "train.py:42 in mmap");
}

TEST_F(PythonLines, AreEscapedAndCutToFit) {
  const auto own = python("collate\x1b[2J", "/home/me/tr\nain.py");
  const auto stack = python("stack", kTorch + "functional.py");

  EXPECT_EQ(line_of({stack, own}),
            "tr\\nain.py:42 in collate\\x1b[2J calling torch.functional.stack");
  EXPECT_EQ(line_of({stack, python("collate", "/home/me/train.py")}, 40), "train.py:42 in collate");
  EXPECT_EQ(line_of({stack, python("collate", "/home/me/train.py")}, 50),
            "train.py:42 in collate calling torch.functional...");
}

TEST_F(PythonLines, ShowWhichOfTwoFilesOfOneName) {
  const auto data = python("load", "/home/me/data/utils.py");
  const auto model = python("build", "/home/me/model/utils.py");

  EXPECT_EQ(line_of({data, model}), "data/utils.py:42 in load");
}

// Autograd and OpenMP have threads that run no Python.
TEST_F(PythonLines, AreThoseThatStartedAThreadWithoutPython) {
  const auto op = native("at::_ops::mul::call(at::Tensor const&)+0x1c");
  const auto start = run_.add_thread_start();
  const auto engine = native("torch::autograd::python::PythonEngine::execute()+0x2");
  const auto backward = python("Tensor.backward", kTorch + "_tensor.py");
  const auto train = python("train", "/home/me/train.py", 57);

  EXPECT_EQ(line_of({op, start, engine, backward, train}),
            "train.py:57 in train calling torch._tensor.Tensor.backward (in a thread)");
  EXPECT_EQ(line_of({op, start, engine, train}),
            "train.py:57 in train calling torch::autograd::python::PythonEngine::execute (in a "
            "thread)");
}

TEST_F(PythonLines, AddUpByLineByFunctionAndByNativeFunction) {
  run_.add_process(trainer_record());
  const auto stack = native("at::_ops::stack::call()+0x1");
  const auto cat = native("at::_ops::cat::call()+0x1");
  const auto first = python("collate", "/home/me/train.py", 42);
  const auto second = python("collate", "/home/me/train.py", 43);
  const auto other = python("evaluate", "/home/me/train.py", 70);
  run_.add_site(trainer_record().key, {stack, first}, rising(4 * kSiteMiB));
  run_.add_site(trainer_record().key, {cat, second}, rising(3 * kSiteMiB));
  run_.add_site(trainer_record().key, {stack, other}, rising(2 * kSiteMiB));

  const RunSites sites = built(run_, 300);
  const SiteRanking ranking = rank_sites(sites, short_warmup());

  ASSERT_EQ(ranking.lines.size(), 3U);
  EXPECT_EQ(ranking.lines[0].name, "/home/me/train.py:42");
  ASSERT_EQ(ranking.functions.size(), 2U);
  EXPECT_EQ(ranking.functions[0].name, "/home/me/train.py collate");
  EXPECT_THAT(ranking.functions[0].sites, ElementsAre(0U, 1U));
  EXPECT_NEAR(ranking.functions[0].growth_bytes_per_s, 7 * kSiteMiB, 0.1 * kSiteMiB);
  ASSERT_EQ(ranking.natives.size(), 2U);
  EXPECT_EQ(ranking.natives[0].name, "/usr/lib/libtorch_cpu.so at::_ops::stack::call()");
  EXPECT_THAT(ranking.natives[0].sites, ElementsAre(0U, 2U));
  EXPECT_NEAR(ranking.natives[0].growth_bytes_per_s, 6 * kSiteMiB, 0.1 * kSiteMiB);
  EXPECT_TRUE(rank_lines(sites, short_warmup()).functions.empty());
}

}  // namespace
}  // namespace tidemark::tracker
