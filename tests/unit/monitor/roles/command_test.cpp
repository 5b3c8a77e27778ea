// SPDX-License-Identifier: Apache-2.0
#include "monitor/roles/command.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tidemark::monitor {
namespace {

using Argv = std::vector<std::string>;

TEST(Command, TakesTheScriptOfAnyPythonForTheProgram) {
  for (const std::string interpreter :
       {"python", "python3", "/usr/bin/python3.13", "/opt/py/bin/python3.13t", "pypy3.10"}) {
    const Argv argv = {interpreter, "-u", "-X", "dev", "/venv/bin/accelerate", "launch"};

    const Command command = parse_command(argv);

    EXPECT_TRUE(command.python) << interpreter;
    EXPECT_EQ(command.script, "/venv/bin/accelerate");
    EXPECT_EQ(command.program, "accelerate");
    ASSERT_EQ(command.arguments.size(), 1U);
    EXPECT_EQ(command.arguments[0], "launch");
  }
}

TEST(Command, DoesNotTakeAnyNameThatBeginsWithPythonForAnInterpreter) {
  const Argv argv = {"/usr/bin/python3-config", "--ldflags"};

  const Command command = parse_command(argv);

  EXPECT_FALSE(command.python);
  EXPECT_EQ(command.program, "python3-config");
}

TEST(Command, ReadsTheModuleAlsoWhenOptionsAreJoined) {
  for (const Argv& argv : {Argv{"python3", "-m", "torch.distributed.run", "train.py"},
                           Argv{"python3", "-um", "torch.distributed.run", "train.py"},
                           Argv{"python3", "-Wignore", "-mtorch.distributed.run", "train.py"}}) {
    const Command command = parse_command(argv);

    EXPECT_EQ(command.module, "torch.distributed.run");
    EXPECT_EQ(command.program, "");
    ASSERT_EQ(command.arguments.size(), 1U);
  }
}

TEST(Command, StopsReadingInterpreterOptionsAtTheScript) {
  const Argv argv = {"python3", "train.py", "-m", "torch.distributed.run"};

  const Command command = parse_command(argv);

  EXPECT_EQ(command.module, "");
  EXPECT_EQ(command.program, "train.py");
}

TEST(Command, TellsCommandStringsScriptsAndInteractiveShellsApart) {
  EXPECT_EQ(parse_command(Argv{"bash", "-euo", "pipefail", "-c", "python t.py"}).inline_code,
            "python t.py");
  EXPECT_EQ(parse_command(Argv{"/bin/sh", "-lc", "python t.py"}).inline_code, "python t.py");
  EXPECT_EQ(parse_command(Argv{"/bin/bash", "-x", "run.sh", "a"}).script, "run.sh");
  EXPECT_TRUE(parse_command(Argv{"-bash"}).interactive());
  EXPECT_TRUE(parse_command(Argv{"/bin/zsh", "-i", "-l"}).interactive());
  EXPECT_TRUE(parse_command(Argv{"bash", "--init-file", "/x/shellIntegration.sh"}).interactive());
}

TEST(Command, KeepsAProcessTitleWhole) {
  const Argv argv = {"sshd: alice@pts/0", "", "", ""};

  EXPECT_EQ(parse_command(argv).program, "sshd: alice@pts/0");
}

TEST(Command, SurvivesEmptyAndOddArgv) {
  EXPECT_EQ(parse_command(Argv{}).program, "");
  EXPECT_EQ(parse_command(Argv{""}).program, "");
  EXPECT_EQ(parse_command(Argv{"-"}).program, "");
  EXPECT_TRUE(parse_command(Argv{"python3", "-X"}).interactive());
  EXPECT_TRUE(parse_command(Argv{"python3", "-c"}).interactive());
  EXPECT_TRUE(parse_command(Argv{"bash", "-c"}).interactive());
}

TEST(Command, FindsAVerbBehindOptions) {
  EXPECT_TRUE(has_verb(parse_command(Argv{"uv", "run", "train.py"}), "run"));
  EXPECT_TRUE(has_verb(parse_command(Argv{"uv", "--quiet", "run", "train.py"}), "run"));
  EXPECT_TRUE(has_verb(parse_command(Argv{"uv", "--directory", "app", "run", "t.py"}), "run"));
  EXPECT_TRUE(has_verb(parse_command(Argv{"uv", "--color=never", "run"}), "run"));
  EXPECT_FALSE(has_verb(parse_command(Argv{"uv", "pip", "install", "run"}), "run"));
  EXPECT_FALSE(has_verb(parse_command(Argv{"uv"}), "run"));
}

TEST(TrainingWords, AreSeenInNamesAndArguments) {
  const auto words = [](std::vector<std::string> argv) {
    return training_words(parse_command(argv));
  };

  EXPECT_EQ(words({"python3", "/home/u/train_gpt.py"}).name, "train_gpt.py");
  EXPECT_EQ(words({"python3", "-m", "llm.pretraining"}).name, "llm.pretraining");
  EXPECT_EQ(words({"python3", "fine-tune.py"}).name, "fine-tune.py");
  EXPECT_EQ(words({"python3", "run_sft.py"}).name, "run_sft.py");
  EXPECT_EQ(words({"./trainer"}).name, "trainer");
  EXPECT_EQ(words({"python3", "x.py", "--num_train_epochs=3"}).argument, "--num_train_epochs");
  EXPECT_EQ(words({"python3", "x.py", "--batch-size", "8"}).argument, "--batch-size");
  EXPECT_EQ(words({"python3", "constraint_solver.py", "--lrx"}).name, "");
  EXPECT_EQ(words({"python3", "constraint_solver.py", "--lrx"}).argument, "");
}

}  // namespace
}  // namespace tidemark::monitor
