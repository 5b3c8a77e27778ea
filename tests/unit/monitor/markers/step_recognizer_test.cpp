// SPDX-License-Identifier: Apache-2.0
#include "monitor/markers/step_recognizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace tidemark::monitor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

// What is recognised in a log, line by line.
struct Log {
  std::shared_ptr<StepLineChoice> choice = std::make_shared<StepLineChoice>();
  StepRecognizer recognizer{choice};
  std::vector<std::int64_t> steps;

  void add(std::string_view line) {
    if (const auto step = recognizer.read(line)) {
      steps.push_back(*step);
    }
  }
  void add_all(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) {
      add(line);
    }
  }
};

struct LogCase {
  const char* name;
  const char* line;  // {} is the number
  const char* shown;
};

class KnownLogs : public testing::TestWithParam<LogCase> {};

TEST_P(KnownLogs, AreRecognised) {
  Log log;
  for (int n = 100; n <= 150; n += 10) {
    log.add(fmt::format(fmt::runtime(GetParam().line), n));
  }

  ASSERT_FALSE(log.steps.empty());
  EXPECT_EQ(log.steps.back(), 150);
  EXPECT_GE(log.steps.size(), 3U);
  EXPECT_THAT(log.choice->take_example(), Optional(std::string(GetParam().shown)));
}

INSTANTIATE_TEST_SUITE_P(
    Words, KnownLogs,
    testing::Values(
        LogCase{"step", "step {} loss 0.512", "step 130"},
        LogCase{"step_of", "Step {}/1000: loss=0.5", "Step 120/1000"},
        LogCase{"in_brackets", "Epoch [1/5], Step [{}/600], Loss: 0.2", "Step [120/600]"},
        LogCase{"python_dict", "{{'loss': 0.5, 'step': {}}}", "'step': 130"},
        LogCase{"json", R"({{"loss": 0.5, "step": {}}})", R"("step": 130)"},
        LogCase{"json_text", R"({{"num_updates": "{}", "lr": "1e-05"}})",
                R"("num_updates": "130")"},
        LogCase{"assignment", "global_step={}, loss=1.25", "global_step=130"},
        LogCase{"logger", "2026-11-18 08:12:11,120 INFO train.py:120 step={} lr=3e-4", "step=130"},
        LogCase{"wandb", "trainer/global_step: {}", "global_step: 130"},
        LogCase{"nano", "iter {}: loss 4.2101, time 23.11ms", "iter 130"},
        LogCase{"megatron", " iteration      {}/  500000 | consumed samples:  3200 |",
                "iteration      120/  500000"},
        LogCase{"batch", "Batch {}/937 loss 0.3", "Batch 120/937"}),
    [](const auto& each) { return each.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Bars, KnownLogs,
    testing::Values(
        LogCase{"tqdm", " 12%|█▏        | {}/1000 [00:10<01:15, 11.71it/s]", "120/1000"},
        LogCase{"tqdm_slow", " 12%|#2   | {}/1000 [04:10<31:15,  2.13s/it, loss=0.3]", "120/1000"},
        LogCase{"tqdm_without_total", "{}it [00:10, 11.71it/s]", "130"},
        LogCase{"lightning", "Epoch 0:  50%|█████     | {}/200 [00:05<00:05, 20.00it/s, v_num=0]",
                "120/200"},
        LogCase{"lightning_without_total", "Epoch 0: | {}/? [00:05<?, 20.00it/s]", "130"},
        LogCase{"lightning_rich", "Epoch 0/9 ━━━━━━━━━━━ {}/200 0:00:05 • 0:00:05 19.5it/s",
                "120/200"},
        LogCase{"keras", "{}/1875 [=>............................] - ETA: 5s - loss: 2.3",
                "120/1875"},
        LogCase{"keras_3", "{}/1875 ━━━━━━━━━━━━━━━━━━━━ 5s 3ms/step - loss: 2.3", "120/1875"},
        LogCase{"imagenet", "Epoch: [0][ {}/5005]\tTime 0.1\tLoss 6.9", "120/5005]"},
        LogCase{"torchvision", "Epoch: [0]  [ {}/1000]  eta: 0:10:00  lr: 0.1", "120/1000]"},
        LogCase{"tutorial", "[1,  {}] loss: 2.173", "[1,  130]"}),
    [](const auto& each) { return each.param.name; });

class OtherNumbers : public testing::TestWithParam<LogCase> {};

TEST_P(OtherNumbers, AreNoSteps) {
  Log log;
  for (int n = 100; n <= 150; n += 10) {
    log.add(fmt::format(fmt::runtime(GetParam().line), n));
  }

  EXPECT_THAT(log.steps, IsEmpty());
  EXPECT_EQ(log.choice->take_example(), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(
    Lines, OtherNumbers,
    testing::Values(
        LogCase{"samples", "Train Epoch: 1 [{}/60000 (1%)]\tLoss: 2.3", ""},
        LogCase{"bytes", "model.bin:  12%|#2  | {}M/440M [00:10<01:15, 11.7MB/s]", ""},
        LogCase{"examples", "Map:  12%|#2   | {}/10000 [00:10<01:15, 1171.22 examples/s]", ""},
        LogCase{"validation_bar",
                "Validation DataLoader 0:  12%|#2 | {}/200 [00:01<00:02, 9.1it/s]", ""},
        LogCase{"evaluation", "eval step {}: accuracy 0.9", ""},
        LogCase{"evaluation_key", "eval_step={}", ""},
        LogCase{"test", "Test: [ {}/200]  acc 0.9", ""}, LogCase{"epoch", "Epoch {}/1000", ""},
        LogCase{"config", "max_steps={} warmup_steps=10", ""},
        LogCase{"speed", "global_step/sec: {}", ""}, LogCase{"fraction", "step {}.5", ""},
        LogCase{"unit", "step {}ms", ""}, LogCase{"option", "--step {}", ""},
        LogCase{"date", "18/{}/2026 [main] ready", ""},
        LogCase{"beyond_its_total", "step {}/50", ""},
        LogCase{"checkpoint", "saved checkpoint-{}", ""}, LogCase{"number_alone", "{}", ""}),
    [](const auto& each) { return each.param.name; });

TEST(StepRecognizer, DoesNotTakeThePartsOfAScript) {
  Log log;
  log.add_all({"Step 1/5: download", "Step 2/5: unpack", "Step 3/5: clean", "Step 4/5: train"});
  log.add_all({"Step 1: download", "Step 2: unpack", "Step 3: train"});

  EXPECT_THAT(log.steps, IsEmpty());
}

TEST(StepRecognizer, DoesNotBelieveNumbersThatGoUpAndDown) {
  Log log;
  log.add_all({"step 64", "step 32", "step 64", "step 16", "step 64", "step 32"});

  EXPECT_THAT(log.steps, IsEmpty());
}

TEST(StepRecognizer, KeepsToOneKindOfLine) {
  Log log;
  for (int n = 1; n <= 6; ++n) {
    log.add(fmt::format("step {}", n));
    log.add(fmt::format("  5%|#    | {}/100 [00:01<00:09, 9.1it/s]", 40 + n));
    log.add(fmt::format("step {} of the server", 900 + n));
  }

  EXPECT_THAT(log.steps, testing::Each(testing::AllOf(testing::Ge(41), testing::Le(46))))
      << "the bar counts up first: steps of a server are in between";
}

TEST(StepRecognizer, TellsBarsOfOneLookApartByTheirTotals) {
  Log log;
  for (int n = 1; n <= 5; ++n) {
    log.add(fmt::format(" 1%|   | {}/500 [00:01<00:09, 9.1it/s]", n));
  }
  for (int n = 1; n <= 50; ++n) {
    log.add(fmt::format(" 1%|   | {}/50 [00:01<00:09, 9.1it/s]", n));
  }
  log.add(" 1%|   | 6/500 [00:01<00:09, 9.1it/s]");

  EXPECT_THAT(log.steps, ElementsAre(3, 4, 5, 6));
}

TEST(StepRecognizer, PrefersTheGlobalStepOfALine) {
  Log log;
  for (int n = 1; n <= 6; ++n) {
    log.add(fmt::format("iter {} step {} global_step {}", 10 * n, n, 1000 + n));
  }

  EXPECT_THAT(log.steps, ElementsAre(1004, 1005, 1006));
}

TEST(StepRecognizer, CountsOnThroughEpochs) {
  Log log;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (int n = 1; n <= 6; ++n) {
      log.add(fmt::format("epoch {} step {}", epoch, n));
    }
  }

  EXPECT_THAT(log.steps, ElementsAre(4, 5, 6, 8, 9, 10, 11, 12, 14, 15, 16, 17, 18));
}

TEST(StepRecognizer, CountsOnThroughEpochsThatBeginWithZero) {
  Log log;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (int n = 0; n <= 20; n += 5) {
      log.add(fmt::format("Epoch {}: 1%| | {}/21 [00:01<00:09, 9.1it/s]", epoch, n));
    }
  }

  EXPECT_THAT(log.steps, ElementsAre(10, 15, 20, 26, 31, 36, 41));
}

TEST(StepRecognizer, IsNotConfusedByRanksThatAreAStepApart) {
  Log log;
  for (int n = 1; n <= 20; ++n) {
    log.add(fmt::format("step {}", n));
    log.add(fmt::format("step {}", n > 1 ? n - 1 : 1));
  }

  ASSERT_FALSE(log.steps.empty());
  EXPECT_EQ(log.steps.back(), 20);
  EXPECT_TRUE(std::is_sorted(log.steps.begin(), log.steps.end()));
}

TEST(StepRecognizer, ReadsThousandsWithCommas) {
  Log log;
  log.add_all({"step 998", "step 999", "step 1,000", "step 1,001", "step 1,002"});

  EXPECT_THAT(log.steps, ElementsAre(1001, 1002));
}

TEST(StepRecognizer, TheFirstStreamThatCountsIsTheSource) {
  Log log;
  StepRecognizer other(log.choice);
  for (int n = 1; n <= 8; ++n) {
    log.add(fmt::format("step {}", n));
  }
  std::vector<std::int64_t> from_other;
  for (int n = 1; n <= 8; ++n) {
    if (const auto step = other.read(fmt::format("iter {}", n))) {
      from_other.push_back(*step);
    }
  }

  EXPECT_THAT(log.steps, ElementsAre(4, 5, 6, 7, 8));
  EXPECT_THAT(from_other, IsEmpty());
}

TEST(StepRecognizer, DoesNotCountBeyondWhatANumberHolds) {
  Log log;
  log.add_all({"step 1", "step 2", "step 3", "step 4"});
  for (int epoch = 0; epoch < 10'000; ++epoch) {
    log.add_all({"step 1", "step 2", "step 999999999999999"});
  }
  EXPECT_TRUE(std::is_sorted(log.steps.begin(), log.steps.end()));
  ASSERT_FALSE(log.steps.empty());
  EXPECT_GE(log.steps.back(), 999'999'999'999'999);

  Log bar;
  for (const char* number : {"1", "2", "3", "4", "9223372036854775806", "1", "2"}) {
    bar.add(fmt::format("{}it [00:10, 11.7it/s]", number));
  }
  EXPECT_THAT(bar.steps, ElementsAre(4, 6));
}

TEST(StepRecognizer, TakesAnyBytes) {
  Log log;
  std::string line;
  for (int n = 0; n < 20'000; ++n) {
    line.push_back(static_cast<char>((n * 7919 >> 3) ^ n));
    if (line.size() > 300) {
      log.add(line);
      line.clear();
    }
  }
  log.add("step 99999999999999999999999999");
  log.add("[");
  log.add("/");
  log.add("1/");
  log.add("step\x1b[");

  EXPECT_THAT(log.steps, IsEmpty());
}

}  // namespace
}  // namespace tidemark::monitor
