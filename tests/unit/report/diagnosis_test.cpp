// SPDX-License-Identifier: Apache-2.0
// The page of `tidemark diagnose`.
#include "report/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/support/diagnosed_run.h"
#include "tests/support/golden.h"

namespace tidemark::report {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using tests::DiagnosedRun;

// Without line ends, which are where the page is full.
std::string in_one_line(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool is_blank = c == ' ' || c == '\n';
    if (!is_blank || (!out.empty() && out.back() != ' ')) {
      out += is_blank ? ' ' : c;
    }
  }
  return out;
}

std::string page_of(DiagnosedRun& run) { return in_one_line(diagnosis_text(run.built(), {})); }

TEST(DiagnosisPage, HasTheAnswerFirstAndFitsOnOnePage) {
  DiagnosedRun run;
  run.add_cache();
  run.add_data_set(663);

  const std::string page = diagnosis_text(run.built(), {});

  EXPECT_EQ(tests::difference_from_golden("diagnosis.txt", page), "");
  EXPECT_LE(std::count(page.begin(), page.end(), '\n'), 40);
  for (std::size_t at = 0; at < page.size();) {
    const std::size_t end = page.find('\n', at);
    EXPECT_LE(end - at, 80U) << page.substr(at, end - at);
    at = end + 1;
  }
}

TEST(DiagnosisPage, NamesRateLimitOwnerAndLineInItsAnswer) {
  DiagnosedRun run;
  run.add_cache();

  const std::string answer = diagnosis_answer(run.built());

  EXPECT_THAT(answer, StartsWith("LIKELY LEAK "));
  EXPECT_THAT(answer, HasSubstr("%: trainer, pid 101 (train.py) grows by 102 KiB/step, 60.0 "
                                "MiB/min since step "));
  EXPECT_THAT(answer, HasSubstr("; limit 1.00 GiB in 10 min 43 s to 17 min 52 s."));
  EXPECT_THAT(answer, HasSubstr("__main__.collator.cache holds all of the growth; it is made at "
                                "train.py:41 in collate calling torch.functional.stack."));
}

TEST(DiagnosisPage, JoinsOwnerAndLineByTheBlocks) {
  DiagnosedRun run;
  run.add_cache();

  EXPECT_THAT(page_of(run), HasSubstr("it makes what `cache` holds"));
}

TEST(DiagnosisPage, SaysWhereTheOwnersMemoryWasMadeIfAnotherLineGrows) {
  DiagnosedRun run;
  const std::uint32_t other = run.sites.add_python("load", "/home/me/data.py", 7);
  const std::uint32_t site =
      run.sites.add_site(tests::trainer_record().key, {other}, tests::constant(tests::kSiteMiB));
  const std::uint32_t grown = std::exchange(run.leak, site);
  run.add_cache();

  const std::string page = page_of(run);

  EXPECT_NE(grown, site);
  EXPECT_THAT(page, HasSubstr("what `cache` holds was made at data.py:7 in load"));
  EXPECT_THAT(page, Not(HasSubstr("it makes what `cache` holds")));
}

TEST(DiagnosisPage, SaysAtWhichNumberOfEntriesACacheWouldEnd) {
  DiagnosedRun run;
  run.add_cache();
  run.add_data_set(663);

  EXPECT_THAT(page_of(run), HasSubstr("If `cache` stops at 663 entries, as many as `dataset` has, "
                                      "it is warm-up: in about 7 min 43 s."));
  EXPECT_THAT(page_of(run), HasSubstr("Ask again in 7 min 43 s: tidemark diagnose --pid 101"));
}

TEST(DiagnosisPage, SaysThatACacheHasMoreEntriesThanThereAreSamples) {
  DiagnosedRun run;
  run.add_cache();
  run.add_data_set(64);

  EXPECT_THAT(page_of(run),
              HasSubstr("`cache` has more entries than `dataset` (64): it is no cache "
                        "by sample."));
}

TEST(DiagnosisPage, SaysNothingOfADataSetThatIsNotKnown) {
  DiagnosedRun run;
  run.add_cache();

  EXPECT_THAT(page_of(run), Not(HasSubstr("as many as")));
  EXPECT_THAT(page_of(run), HasSubstr("What speaks for a leak: it gets "));
}

TEST(DiagnosisPage, SaysNothingOfADataSetForAListThatNobodyLooksUp) {
  DiagnosedRun run;
  run.add_cache("__main__.history", "list");
  run.add_data_set(663);

  const std::string page = page_of(run);

  EXPECT_THAT(page, Not(HasSubstr("as many as")));
  EXPECT_THAT(page, HasSubstr("nothing is looked up by a key in a list"));
  EXPECT_THAT(page, HasSubstr("keep numbers in it rather than tensors"));
}

TEST(DiagnosisPage, SaysWhatCouldNotBeLookedAtAndWhy) {
  DiagnosedRun run;
  run.with_sites = false;
  run.events = {{0.0, EventKind::kRefused, {}, "lines: cannot attach\x1b to pid 101"},
                {0.0, EventKind::kRefused, {}, "owners: permission denied; run as root"}};

  const std::string page = page_of(run);

  EXPECT_THAT(page, HasSubstr("not seen lines: cannot attach\\x1b to pid 101 owners: permission "
                              "denied; run as root"));
  EXPECT_THAT(page, StartsWith("LIKELY LEAK "));
  EXPECT_THAT(page, HasSubstr("tidemark profile --pid 101 shows which line allocates it."));
}

TEST(DiagnosisPage, GivesNoCommandForAJobThatHasEnded) {
  DiagnosedRun run;
  run.add_cache();
  Diagnosis diagnosis = run.built();
  diagnosis.target = {};

  const std::string page = in_one_line(diagnosis_text(diagnosis, {}));

  EXPECT_THAT(page, Not(HasSubstr("--pid")));
  EXPECT_THAT(page, HasSubstr("record a longer run: "));
}

TEST(DiagnosisPage, CallsAJobThatDoesNotGrowStable) {
  DiagnosedRun run;
  run.sites = tests::SiteRun();
  run.sites.with_steps = true;
  run.sites.add_process(tests::trainer_record());
  run.add_data_set(663);

  const std::string page = page_of(run);

  EXPECT_THAT(page, StartsWith("No leak, stable: "));
  EXPECT_THAT(page, HasSubstr("NOTHING KEEPS GROWING"));
  EXPECT_THAT(page, Not(HasSubstr("what grows")));
  EXPECT_THAT(page, Not(HasSubstr("how long")));
}

// The tracer reads the tables of libraries.
TEST(DiagnosisPage, TakesPagesOfFilesForItsOwnDoingWhereItTraces) {
  for (const bool with_sites : {true, false}) {
    DiagnosedRun run;
    run.sites = tests::SiteRun();
    run.sites.with_steps = true;
    run.sites.add_process(tests::trainer_record());
    run.file_bytes_per_s = 4 * tests::kSiteMiB;
    run.with_sites = with_sites;

    const Diagnosis diagnosis = run.built();

    const auto& advice = diagnosis.run.verdict->advice;
    const bool has_advice = std::any_of(advice.begin(), advice.end(),
                                        [](const auto& each) { return each.id == "file_mapping"; });
    EXPECT_EQ(has_advice, !with_sites);
  }
}

TEST(DiagnosisPage, CallsNothingConstantAfterOneLook) {
  DiagnosedRun run;
  run.count_of_looks = 1;
  run.add_cache();
  run.add_data_set(663);

  const std::string page = page_of(run);

  EXPECT_THAT(page, HasSubstr("ONE LOOK"));
  EXPECT_THAT(page, Not(HasSubstr("constant")));
}

TEST(DiagnosisPage, EscapesNames) {
  DiagnosedRun run;
  run.add_cache("__main__.\x1b[31mcache");

  const std::string page = diagnosis_text(run.built(), {});

  EXPECT_EQ(page.find('\x1b'), std::string::npos);
  EXPECT_THAT(page, HasSubstr("\\x1b[31mcache"));
}

MemoryLedger ledger_of_blocks(double t_s, std::uint64_t mib) {
  MemoryLedger ledger;
  ledger.key = tests::trainer_record().key;
  ledger.t_s = t_s;
  LedgerRow blocks;
  blocks.kind = LedgerKind::kAnonymous;
  blocks.count = 7;
  blocks.footprint_bytes = mib << 20U;
  blocks.rss_bytes = mib << 20U;
  LedgerRow program;
  program.kind = LedgerKind::kProgram;
  program.footprint_bytes = 9U << 20U;
  ledger.rows = {blocks, program};
  return ledger;
}

TEST(DiagnosisPage, SaysWhichRowsOfTheMemoryMapGrew) {
  DiagnosedRun run;
  run.ledgers = {ledger_of_blocks(2.0, 40), ledger_of_blocks(120.0, 158)};

  EXPECT_THAT(page_of(run), HasSubstr("In its memory map, over 1 min 58 s: large blocks, other "
                                      "anonymous (7 mappings) +118 MiB."));
}

TEST(DiagnosisPage, SaysNothingOfAMapThatWasReadOnce) {
  DiagnosedRun run;
  run.ledgers = {ledger_of_blocks(2.0, 40)};

  EXPECT_THAT(page_of(run), Not(HasSubstr("In its memory map")));
}

TEST(DiagnosisPage, NamesTheUsualSuspectsThatItIsNot) {
  DiagnosedRun run;
  run.add_cache();
  run.add_data_set(663);

  const std::string page = page_of(run);

  EXPECT_THAT(page, HasSubstr("of the usual suspects it is: collator"));
  EXPECT_THAT(page, HasSubstr("what it is not dataset loading (210 MiB, constant), "));
}

// What an intervention does to the memory is no part of the curve.
TEST(DiagnosisPage, SaysWhatInterventionsHaveShown) {
  DiagnosedRun run;
  run.add_cache();
  const std::string before = diagnosis_answer(run.built());
  Tick mark = run.ticks().back();
  mark.t_s = 121.0;
  mark.heap = {};
  mark.events.push_back({121.0, EventKind::kMark, {}, std::string(kInterventionsBegin)});
  Tick done = mark;
  done.t_s = 130.0;
  done.events.clear();
  done.processes[0].rss_anon_bytes = 10U << 20U;
  done.tree.footprint_bytes = 10U << 20U;
  InterventionRecord gc;
  gc.key = tests::trainer_record().key;
  gc.kind = InterventionKind::kGc;
  gc.outcome = InterventionOutcome::kConfirmed;
  gc.before_bytes = 200U << 20U;
  gc.after_bytes = 10U << 20U;
  gc.effect_bytes = 190 << 20;
  gc.noise_bytes = 1U << 20U;
  done.interventions = {gc};

  const Diagnosis diagnosis = run.built({mark, done});
  const std::string page = in_one_line(diagnosis_text(diagnosis, {}));

  EXPECT_EQ(diagnosis_answer(diagnosis), before);
  EXPECT_EQ(diagnosis.watched_s, 120.0);
  EXPECT_THAT(page, HasSubstr("what was tried 190 MiB "));
  const auto json = nlohmann::json::parse(diagnosis_json(diagnosis));
  EXPECT_EQ(json["interventions"]["processes"][0]["interventions"][0]["kind"], "gc");
  EXPECT_EQ(json["suspects"][4]["suspect"], "garbage");
  EXPECT_EQ(json["suspects"][4]["state"], "this_is_it");
}

TEST(DiagnosisLine, HasTheAnswerSoFar) {
  DiagnosedRun run;
  run.add_cache();

  const std::string line = diagnosis_line(run.built(), 120.0);

  EXPECT_THAT(line, StartsWith("00:02:00  step 1200  LIKELY LEAK "));
  EXPECT_THAT(line, HasSubstr("; __main__.collator.cache; train.py:41 in collate"));
}

TEST(DiagnosisJson, HasTheReportsOfAllParts) {
  DiagnosedRun run;
  run.add_cache();
  run.events = {{0.0, EventKind::kRefused, {}, "ledger: no"}};

  const auto json = nlohmann::json::parse(diagnosis_json(run.built()));

  EXPECT_EQ(json["schema"], 1);
  EXPECT_THAT(json["answer"].get<std::string>(), StartsWith("LIKELY LEAK "));
  EXPECT_EQ(json["verdict"]["verdict"], "growing");
  EXPECT_EQ(json["verdict"]["forecast"]["limit_bytes"], 1U << 30U);
  EXPECT_EQ(json["owners"]["owners"][0]["path"], "__main__.collator.cache");
  EXPECT_EQ(json["lines"]["lines"][0]["line"], 41);
  EXPECT_EQ(json["refused"][0]["what"], "ledger");
  EXPECT_EQ(json["refused"][0]["why"], "no");
}

TEST(DiagnosisJson, HasNullForWhatWasNotLookedAt) {
  DiagnosedRun run;
  run.with_sites = false;
  run.looks.adjust = [](HeapFacts::OfProcess& of, std::size_t) { of.look.objects = 0; };
  Diagnosis diagnosis = run.built();

  const auto json = nlohmann::json::parse(diagnosis_json(diagnosis));

  EXPECT_TRUE(json["lines"].is_null());
  EXPECT_EQ(json["verdict"]["verdict"], "growing");
}

}  // namespace
}  // namespace tidemark::report
