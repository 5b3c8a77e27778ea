// SPDX-License-Identifier: Apache-2.0
// Whose code a frame of Python is, and how it is called.
#include "tracker/sites/python_code.h"

#include <gtest/gtest.h>

#include <string>

namespace tidemark::tracker {
namespace {

FrameRecord python_frame(const std::string& file, const std::string& function = "f") {
  FrameRecord frame;
  frame.kind = FrameKind::kPython;
  frame.file = file;
  frame.function = function;
  frame.line = 7;
  return frame;
}

TEST(PythonCode, TellsTheUsersCodeFromThatOfLibraries) {
  struct Case {
    const char* file;
    CodeOwner owner;
    const char* library;
    const char* place;
  };
  constexpr auto kUser = CodeOwner::kUser;
  constexpr auto kLibrary = CodeOwner::kLibrary;
  for (const Case& each : {
           Case{"train.py", kUser, "", "train.py"},
           Case{"/home/me/src/train.py", kUser, "", "train.py"},
           Case{"/usr/src/app/train.py", kUser, "", "train.py"},
           Case{"/home/me/torch/train.py", kUser, "", "train.py"},
           Case{"/home/me/python3.11/train.py", kUser, "", "train.py"},
           Case{"/home/me/mylib/python3.11/train.py", kUser, "", "train.py"},
           Case{"/home/me/bin/train.py", kUser, "", "train.py"},
           Case{"/v/lib/python3.11/site-packages/torch/functional.py", kLibrary, "torch",
                "torch/functional.py"},
           Case{"venv/lib/python3.9/site-packages/six.py", kLibrary, "six", "six.py"},
           Case{"/usr/lib/python3/dist-packages/numpy/core/numeric.py", kLibrary, "numpy",
                "numpy/core/numeric.py"},
           Case{"/v/site-packages/foo-1.0-py3.9.egg/foo/a.py", kLibrary, "foo", "foo/a.py"},
           Case{"/usr/lib/python3.11/threading.py", kLibrary, "the standard library",
                "threading.py"},
           Case{"/home/me/.pyenv/versions/3.13.0/lib/python3.13/json/decoder.py", kLibrary,
                "the standard library", "json/decoder.py"},
           Case{"/opt/lib/python3.14t/abc.py", kLibrary, "the standard library", "abc.py"},
           Case{"/opt/python311.zip/abc.py", kLibrary, "the standard library", "abc.py"},
           Case{"/usr/lib/python3.11/importlib/__init__.py", kLibrary, "importlib",
                "importlib/__init__.py"},
           Case{"<frozen importlib._bootstrap>", kLibrary, "importlib", "importlib._bootstrap"},
           Case{"<frozen runpy>", kLibrary, "the standard library", "runpy"},
           Case{"/usr/share/app/a.py", kLibrary, "a.py", "a.py"},
           Case{"/home/me/.vscode/extensions/ms-python.debugpy-1/bundled/x.py", kLibrary, "debugpy",
                "x.py"},
           Case{"", kLibrary, "Python", ""},
       }) {
    const PythonCode code = python_code(python_frame(each.file));
    EXPECT_EQ(code.owner, each.owner) << each.file;
    EXPECT_EQ(code.library, each.library) << each.file;
    EXPECT_EQ(code.place, each.place) << each.file;
  }
}

TEST(PythonCode, NamesWhatGeneratedIt) {
  struct Case {
    const char* file;
    CodeOwner owner;
    const char* place;
  };
  constexpr auto kMade = CodeOwner::kGenerated;
  for (const Case& each : {
           Case{"/tmp/torchinductor_root/ab/cabxyz0123456789.py", kMade,
                "<torch.compile cabxyz012>"},
           Case{"/cache/ab/cab4567890123456789012345678901234567890123456789.py", kMade,
                "<torch.compile cab456789>"},
           Case{"<eval_with_key>.12", kMade, "<torch.fx graph 12>"},
           Case{"<eval_with_key>.3 from /x/y.py:9 in g", kMade, "<torch.fx graph 3>"},
           Case{"<eval_with_key>", kMade, "<torch.fx graph>"},
           Case{"<attrs generated init job.Batch>", kMade, "<attrs generated init job.Batch>"},
           Case{"<__array_function__ internals>", kMade, "<__array_function__ internals>"},
           Case{"<whatever>", kMade, "<whatever>"},
           Case{"<torch_package_0>.net/model.py", CodeOwner::kLibrary, "net/model.py"},
           Case{"<torch_package_0>", kMade, "<torch_package_0>"},
           Case{"<string>", CodeOwner::kString, "<string>"},
           Case{"<", kMade, "<"},
       }) {
    const PythonCode code = python_code(python_frame(each.file));
    EXPECT_EQ(code.owner, each.owner) << each.file;
    EXPECT_EQ(code.place, each.place) << each.file;
  }
  const PythonCode made = python_code(python_frame("<string>", "__create_fn__.<locals>.__init__"));
  EXPECT_EQ(made.owner, kMade);
  EXPECT_EQ(made.place, "<dataclass>");
}

TEST(PythonCode, TakesWhatSomebodyTypedForTheUsers) {
  struct Case {
    const char* file;
    const char* place;
  };
  for (const Case& each : {Case{"<stdin>", "<stdin>"}, Case{"<python-input-3>", "<python-input-3>"},
                           Case{"<ipython-input-3-0a1b2c>", "In[3]"},
                           Case{"/tmp/ipykernel_123/456.py", "notebook cell 456"},
                           Case{"<doctest job.f[2]>", "doctest job.f[2]"}}) {
    const PythonCode code = python_code(python_frame(each.file));
    EXPECT_EQ(code.owner, CodeOwner::kUser) << each.file;
    EXPECT_EQ(code.place, each.place) << each.file;
  }
}

// Made when a package is installed; but a script of that kind may have functions.
TEST(PythonCode, DoesNotTakeALauncherForTheUsers) {
  EXPECT_EQ(python_code(python_frame("/opt/venv/bin/torchrun", "<module>")).library, "torchrun");
  EXPECT_EQ(python_code(python_frame("/home/me/bin/train", "main")).owner, CodeOwner::kUser);
}

TEST(PythonFunction, IsReadable) {
  EXPECT_EQ(python_function("Trainer.train"), "Trainer.train");
  EXPECT_EQ(python_function("make.<locals>.inner.<locals>.<lambda>"), "make.inner.<lambda>");
  EXPECT_EQ(python_function("__create_fn__.<locals>.__init__"), "__init__");
  EXPECT_EQ(python_function("Net.torch_dynamo_resume_in_forward_at_12"), "Net.forward");
  EXPECT_EQ(python_function("torch_dynamo_resume_in_"), "torch_dynamo_resume_in_");
  EXPECT_EQ(python_function("<module>"), "<module>");
}

TEST(PythonCall, IsNamedAsInTheSource) {
  const std::string packages = "/v/lib/python3.11/site-packages/";

  EXPECT_EQ(python_call(python_frame(packages + "torch/functional.py", "stack")),
            "torch.functional.stack");
  EXPECT_EQ(python_call(python_frame(packages + "transformers/trainer.py", "Trainer.train")),
            "transformers.trainer.Trainer.train");
  EXPECT_EQ(python_call(python_frame(packages + "torch/__init__.py", "<module>")), "import torch");
  EXPECT_EQ(python_call(python_frame("/usr/lib/python3.11/json/__init__.py", "loads")),
            "json.loads");
  EXPECT_EQ(python_call(python_frame("<string>", "__create_fn__.<locals>.__init__")),
            "__init__ in <dataclass>");
  EXPECT_EQ(python_call(python_frame("train.py", "load")), "load");
}

TEST(FileNames, AreAsLongAsTheyMustBe) {
  FileNames names;
  for (const char* file : {"/me/job/train.py", "/me/job/data/utils.py", "/me/job/model/utils.py",
                           "/me/job/pkg/__init__.py", "/v/site-packages/torch/train.py", "eval.py",
                           "/me/job/eval.py"}) {
    names.add(python_frame(file));
  }

  EXPECT_EQ(names.short_name("/me/job/train.py"), "train.py");  // not of torch
  EXPECT_EQ(names.short_name("/me/job/data/utils.py"), "data/utils.py");
  EXPECT_EQ(names.short_name("/me/job/model/utils.py"), "model/utils.py");
  EXPECT_EQ(names.short_name("/me/job/pkg/__init__.py"), "pkg/__init__.py");
  EXPECT_EQ(names.short_name("eval.py"), "eval.py");  // both are, most likely, one file
  EXPECT_EQ(names.short_name("/me/job/eval.py"), "eval.py");
  EXPECT_EQ(names.short_name("/x.py"), "x.py");
  EXPECT_EQ(names.short_name(""), "");
}

TEST(FileNames, AreWholeWhereOnePathIsTheEndOfAnother) {
  FileNames names;
  names.add(python_frame("a/data/utils.py"));
  names.add(python_frame("b/data/utils.py"));
  names.add(python_frame("utils.py"));

  EXPECT_EQ(names.short_name("a/data/utils.py"), "a/data/utils.py");
}

}  // namespace
}  // namespace tidemark::tracker
