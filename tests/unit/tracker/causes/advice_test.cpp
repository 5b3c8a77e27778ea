// SPDX-License-Identifier: Apache-2.0
#include "tracker/causes/advice.h"

#include <fstream>
#include <iterator>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tracker/causes/signature_facts.h"

namespace tidemark::tracker {
namespace {

constexpr double kMB = 1e6;
constexpr double kGB = 1e9;

// What a quiet job of 8 GB on a GPU looks like; each signature changes a few of these.
Facts quiet() {
  Facts facts;
  facts.tree_floor_bytes = 8 * kGB;
  facts.gpu_used = true;
  facts.trainer = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
  facts.tree = facts.trainer;
  facts.dataloader_workers = facts.trainer;
  return facts;
}

PhaseGrowth grows_inside(std::uint32_t phases, std::uint32_t kept) {
  PhaseGrowth growth;
  growth.phases = phases;
  growth.rising = phases;
  growth.kept = kept;
  growth.released = phases - kept;
  growth.inside_bytes = phases * kGB;
  return growth;
}

void grow_in(PhaseKind kind, const PhaseGrowth& growth, Facts& facts) {
  facts.trainer_in_phases[static_cast<std::size_t>(kind)] = growth;
}

void leak(Facts& facts) {
  facts.trainer_verdict = Verdict::kLeak;
  facts.trainer_form = GrowthForm::kStraight;
  facts.trainer.footprint_bytes = 2 * kGB;
  facts.trainer.rss_bytes = 2 * kGB;
  facts.bytes_per_step = 3 * kMB;
  facts.rate_spread = 0.3;
}

void warm_up(GrowthForm form, Facts& facts) {
  facts.trainer_verdict = Verdict::kWarmup;
  facts.trainer_form = form;
  facts.trainer.footprint_bytes = 3 * kGB;
  facts.warmup_steps = 80;
}

// A tenth of the job is garbage of cycles.
InterpreterState garbage_in(const std::string& python) {
  InterpreterState state;
  state.facts.python = python;
  state.facts.gc_enabled = true;
  state.facts.gc_thresholds = {700, 10, 10};
  state.facts.gc_frozen_objects = 0;
  state.garbage_bytes = 0.8 * kGB;
  return state;
}

struct Signature {
  std::string id;
  void (*show)(Facts& facts);
};

std::ostream& operator<<(std::ostream& out, const Signature& signature) {
  return out << signature.id;
}

const std::vector<Signature>& signatures() {
  static const std::vector<Signature> kSignatures{
      {"dataloader_copy_on_write",
       [](Facts& f) { f.dataloader_workers.footprint_bytes = 4 * kGB; }},
      {"first_epoch_cache",
       [](Facts& f) {
         warm_up(GrowthForm::kStraight, f);
         f.ended_with_epoch = true;
       }},
      {"compile_workers",
       [](Facts& f) {
         f.compile_workers_are_overhead = true;
         f.compile_workers_most = 20;
       }},
      {"compile_pool_returns", [](Facts& f) { f.compile_pool_returned = true; }},
      {"recompilation",
       [](Facts& f) {
         leak(f);
         f.compile_workers_most = 20;
         f.compile_bursts = 5;
       }},
      {"compiled_frames_kept",
       [](Facts& f) {
         leak(f);
         f.compile_workers_most = 20;
         f.rate_spread = 0.01;
         f.compiler_disable = true;
       }},
      {"primitive_cache",
       [](Facts& f) {
         f.trainer_verdict = Verdict::kGrowing;
         f.trainer_form = GrowthForm::kSlowing;
         f.trainer.footprint_bytes = 2 * kGB;
         f.grows_in_onednn = true;
       }},
      {"malloc_arenas", [](Facts& f) { f.malloc_heaps = 64; }},
      {"incremental_collector",
       [](Facts& f) {
         f.trainer_verdict = Verdict::kGrowing;
         f.interpreter = InterpreterState{};
         f.interpreter->facts.python = "3.14.3";
       }},
      {"collector_off",
       [](Facts& f) {
         f.interpreter = garbage_in("3.11.2");
         f.interpreter->facts.gc_enabled = false;
       }},
      {"collector_frozen",
       [](Facts& f) {
         f.interpreter = garbage_in("3.11.2");
         f.interpreter->facts.gc_frozen_objects = 1000;
       }},
      {"collector_rare",
       [](Facts& f) {
         f.interpreter = garbage_in("3.11.2");
         f.interpreter->facts.gc_thresholds = {50'000, 10, 10};
       }},
      {"freed_but_kept",
       [](Facts& f) {
         f.trainer.footprint_bytes = 2 * kGB;
         f.slack_share = 0.8;
       }},
      {"pinned_host_memory",
       [](Facts& f) {
         f.trainer_verdict = Verdict::kLeak;
         f.trainer.footprint_bytes = 2 * kGB;
         f.trainer.shmem_bytes = 1.9 * kGB;
       }},
      {"file_system_sharing",
       [](Facts& f) {
         f.shm_managers_most = 6;
         f.dataloader_workers.shmem_bytes = 2 * kGB;
         f.unheld_shm_grows = true;
       }},
      {"unheld_shm", [](Facts& f) { f.unheld_shm_grows = true; }},
      {"shared_segment", [](Facts& f) { f.tree.rss_bytes = 4 * kGB; }},
      {"file_mapping",
       [](Facts& f) {
         f.tree.file_bytes = 5 * kGB;
         f.tree.rss_bytes = 5 * kGB;
         f.tree.pss_bytes = 5 * kGB;
       }},
      {"page_cache_in_cgroup", [](Facts& f) { f.cgroup_current_share = 0.97; }},
      {"swapped_out",
       [](Facts& f) {
         f.trainer_verdict = Verdict::kLeak;
         f.trainer.footprint_bytes = 2 * kGB;
         f.trainer.swap_bytes = 2 * kGB;
         f.trainer.rss_bytes = 0.0;
       }},
      {"checkpoint_cycle",
       [](Facts& f) { grow_in(PhaseKind::kCheckpoint, grows_inside(6, 4), f); }},
      {"checkpoint_state_kept",
       [](Facts& f) {
         leak(f);
         f.trainer_leak_shape = LeakShape::kSteps;
         grow_in(PhaseKind::kCheckpoint, grows_inside(5, 5), f);
       }},
      {"async_save_allocator",
       [](Facts& f) {
         leak(f);
         f.trainer_leak_shape = LeakShape::kSteps;
         f.aarch64 = true;
         grow_in(PhaseKind::kCheckpoint, grows_inside(5, 5), f);
       }},
      {"full_state_dict",
       [](Facts& f) {
         f.ranks = 8;
         grow_in(PhaseKind::kCheckpoint, grows_inside(4, 0), f);
         f.gpu_in_phases = f.trainer_in_phases;
       }},
      {"graph_kept_until_epoch_end",
       [](Facts& f) {
         f.trainer_verdict = Verdict::kSpikes;
         f.sawtooth = true;
         f.tooth_steps = 500;
         f.tooth_is_epoch = true;
       }},
      {"eval_outputs",
       [](Facts& f) {
         f.trainer_verdict = Verdict::kSpikes;
         grow_in(PhaseKind::kEval, grows_inside(4, 0), f);
       }},
      {"eval_workers_stay",
       [](Facts& f) {
         f.workers_come_at_evals = true;
         f.processes_keep_coming = true;
         grow_in(PhaseKind::kEval, grows_inside(4, 4), f);
       }},
      {"logging_lists",
       [](Facts& f) {
         leak(f);
         grow_in(PhaseKind::kLogging, grows_inside(30, 30), f);
       }},
      {"profiler_buffers",
       [](Facts& f) {
         leak(f);
         f.trainer_leak_shape = LeakShape::kSteps;
         grow_in(PhaseKind::kProfile, grows_inside(1, 1), f);
       }},
      {"tokenizer_cache",
       [](Facts& f) {
         leak(f);
         grow_in(PhaseKind::kTokenize, grows_inside(9, 9), f);
       }},
      {"repeated_export",
       [](Facts& f) {
         leak(f);
         grow_in(PhaseKind::kExport, grows_inside(5, 5), f);
       }},
      {"math_library_buffers",
       [](Facts& f) {
         leak(f);
         f.bytes_per_step = 4096;
         f.grows_in_math_library = true;
       }},
      {"autograd_function_cycle",
       [](Facts& f) {
         leak(f);
         f.custom_autograd_function = true;
       }},
      {"gpu_outside_torch",
       [](Facts& f) {
         f.trainer.gpu_bytes = 2 * kGB;
         f.torch_reserved_gpu_bytes = 0.0;
       }},
      {"optimizer_state",
       [](Facts& f) {
         warm_up(GrowthForm::kOneJump, f);
         f.warmup_steps = 1;
         f.jumped_at_first_step = true;
       }},
      {"processes_pile_up", [](Facts& f) { f.processes_keep_coming = true; }},
      {"orphaned_workers", [](Facts& f) { f.workers_outliving_trainer = 12; }},
      {"collector_sawtooth",
       [](Facts& f) {
         f.trainer_verdict = Verdict::kSpikes;
         f.sawtooth = true;
         f.tooth_steps = 70;
       }},
      {"shuffle_buffers",
       [](Facts& f) {
         warm_up(GrowthForm::kSlowing, f);
         f.tensorflow_loaded = true;
       }},
      {"huge_pages",
       [](Facts& f) {
         f.huge_pages_bytes = 2 * kGB;
         f.live_heap_bytes = 0.0;
       }},
      {"kept_per_step", [](Facts& f) { leak(f); }}};
  return kSignatures;
}

std::vector<std::string> fired(const Facts& facts) {
  std::vector<std::string> ids;
  for (const Advice& advice : advice_for(facts)) {
    ids.emplace_back(advice.id);
  }
  return ids;
}

class AdviceOf : public testing::TestWithParam<Signature> {};

TEST_P(AdviceOf, FiresOnItsOwnSignatureAndNoOtherDoes) {
  Facts facts = quiet();
  GetParam().show(facts);

  EXPECT_EQ(fired(facts), std::vector<std::string>{GetParam().id});
}

INSTANTIATE_TEST_SUITE_P(EachSignature, AdviceOf, testing::ValuesIn(signatures()),
                         [](const auto& one) { return one.param.id; });

TEST(Advice, IsSilentOnAQuietJob) { EXPECT_TRUE(fired(quiet()).empty()); }

TEST(Advice, IsSilentOnOrdinaryWarmupAndOrdinarySpikes) {
  Facts short_warmup = quiet();
  warm_up(GrowthForm::kStraight, short_warmup);
  short_warmup.warmup_steps = 5;
  Facts other_epoch = quiet();
  warm_up(GrowthForm::kStraight, other_epoch);
  other_epoch.ended_with_epoch = false;
  Facts spikes = quiet();
  spikes.trainer_verdict = Verdict::kSpikes;

  EXPECT_TRUE(fired(short_warmup).empty());
  EXPECT_TRUE(fired(other_epoch).empty());
  EXPECT_TRUE(fired(spikes).empty());
}

// Each was given once, and was wrong.
TEST(Advice, IsSilentWhereTheCurveAloneTellsNoCause) {
  Facts saw_over_leak = quiet();
  leak(saw_over_leak);
  saw_over_leak.gpu_used = false;
  saw_over_leak.trainer_form = GrowthForm::kSlowing;
  saw_over_leak.sawtooth = true;
  Facts line_that_ends = quiet();
  warm_up(GrowthForm::kStraight, line_that_ends);
  Facts small_jump = quiet();
  warm_up(GrowthForm::kOneJump, small_jump);
  small_jump.jumped_at_first_step = true;
  small_jump.tree_floor_bytes = 0.4 * kGB;
  small_jump.trainer.footprint_bytes = 63 * kMB;
  Facts kilobytes = quiet();
  leak(kilobytes);
  kilobytes.gpu_used = false;
  kilobytes.bytes_per_step = 4096;

  EXPECT_EQ(fired(saw_over_leak), std::vector<std::string>{"kept_per_step"});
  EXPECT_TRUE(fired(line_that_ends).empty());
  EXPECT_TRUE(fired(small_jump).empty());
  EXPECT_TRUE(fired(kilobytes).empty());
}

TEST(Advice, IsSilentWhereTheFactsAreUnknown) { EXPECT_TRUE(fired(Facts{}).empty()); }

// The report ends with the command that comes next.
TEST(Advice, SendsNobodyToACommandOfOursNorToOtherTools) {
  for (const AdviceRule& rule : advice_rules()) {
    for (const std::string_view text : {rule.advice.seen, rule.advice.cause, rule.advice.remedy}) {
      EXPECT_EQ(text.find("tidemark"), std::string_view::npos) << rule.advice.id;
      EXPECT_EQ(text.find("heap profiler"), std::string_view::npos) << rule.advice.id;
    }
  }
}

TEST(Advice, HasATestedSignatureForEachRule) {
  std::set<std::string> tested;
  for (const Signature& signature : signatures()) {
    tested.insert(signature.id);
  }
  std::set<std::string> rules;
  for (const AdviceRule& rule : advice_rules()) {
    EXPECT_FALSE(rule.advice.seen.empty());
    EXPECT_FALSE(rule.advice.cause.empty());
    EXPECT_FALSE(rule.advice.remedy.empty());
    EXPECT_TRUE(rules.emplace(rule.advice.id).second) << rule.advice.id;
  }

  EXPECT_EQ(rules, tested);
  EXPECT_GE(rules.size(), 25U);
}

TEST(Advice, IsDocumentedAsItIsPrinted) {
  std::ifstream file(TIDEMARK_SOURCE_DIR "/docs/known-causes.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};

  for (const AdviceRule& rule : advice_rules()) {
    const Advice& advice = rule.advice;
    EXPECT_NE(page.find("| `" + std::string(advice.id) + "` "), std::string::npos) << advice.id;
    EXPECT_NE(page.find("| " + std::string(advice.seen) + " | " + std::string(advice.cause) +
                        " | " + std::string(advice.remedy) + " |"),
              std::string::npos)
        << advice.id;
  }
}

TEST(Advice, OneFallAmongTheStepsOfALeakIsNoCycle) {
  Facts facts = quiet();
  leak(facts);
  facts.trainer_leak_shape = LeakShape::kSteps;
  grow_in(PhaseKind::kCheckpoint, grows_inside(9, 8), facts);
  EXPECT_THAT(fired(facts), testing::Contains("checkpoint_state_kept"));
  EXPECT_THAT(fired(facts), testing::Not(testing::Contains("checkpoint_cycle")));

  facts.trainer_verdict = Verdict::kGrowing;
  EXPECT_THAT(fired(facts), testing::Contains("checkpoint_cycle"));
}

TEST(Advice, TrustsTheVerdictOnCopyOnWriteWhereWorkersCameOneByOne) {
  Facts facts;
  facts.tree_floor_bytes = 20 * kGB;
  facts.dataloader_workers.footprint_bytes = 4 * kGB;
  facts.dataloader_workers.rss_bytes = 3 * kGB;  // the last of them was born in the window
  EXPECT_TRUE(advice_for(facts).empty());
  facts.dataloader_workers_copy = true;
  ASSERT_EQ(advice_for(facts).size(), 1U);
  EXPECT_EQ(advice_for(facts).front().id, "dataloader_copy_on_write");
}

}  // namespace
}  // namespace tidemark::tracker
