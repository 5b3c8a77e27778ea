// SPDX-License-Identifier: Apache-2.0
// The finder and the roles on a real tree: wrapper -> python -> 20 compile workers, 2 DataLoader
// workers. Other jobs may run on the machine, so only what is below our own wrapper is judged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/text.h"
#include "monitor/procfs/process_handle.h"
#include "monitor/procfs/process_source.h"
#include "monitor/roles/finder.h"
#include "monitor/roles/roles.h"
#include "tests/support/subprocess.h"
#include "tests/support/temp_tree.h"

namespace tidemark::monitor {
namespace {

using testing::Contains;
using testing::UnorderedElementsAreArray;

// The numbers after "key": in the victim's truth line.
std::vector<pid_t> truth(std::string_view line, const std::string& key) {
  std::vector<pid_t> pids;
  std::size_t at = line.find("\"" + key + "\":");
  if (at == std::string_view::npos) {
    return pids;
  }
  line.remove_prefix(at + key.size() + 3);
  line = line.substr(0, line.find_first_of(line.starts_with('[') ? "]" : ",}"));
  line.remove_prefix(line.starts_with('[') ? 1 : 0);
  for (const std::string_view word : split(line, ',')) {
    if (const auto pid = parse_number<pid_t>(word)) {
      pids.push_back(*pid);
    }
  }
  return pids;
}

// A training tree that has touched all of its memory.
class TrainingTree {
 public:
  explicit TrainingTree(std::vector<std::string> options) : process_(argv(std::move(options))) {
    line_ = process_.read_until("\n");
  }
  ~TrainingTree() {
    process_.signal(SIGTERM);
    process_.wait();
  }
  TrainingTree(const TrainingTree&) = delete;
  TrainingTree& operator=(const TrainingTree&) = delete;

  pid_t root() const { return process_.pid(); }
  pid_t trainer() const { return truth(line_, "trainer").at(0); }
  std::vector<pid_t> pids(const std::string& role) const { return truth(line_, role); }

 private:
  static std::vector<std::string> argv(std::vector<std::string> options) {
    options.insert(options.begin(), TIDEMARK_BINARY_DIR "/tests/programs/training_tree");
    options.insert(options.end(), {"--seconds", "60", "--shared-mb", "4", "--worker-mb", "1"});
    return options;
  }

  tests::Subprocess process_;
  std::string line_;
};

// What the machine shows, without what is not below `root`.
Evidence evidence_below(pid_t root) {
  auto source = make_procps_source();
  EXPECT_TRUE(source);
  EvidenceOptions options;
  options.uid = ::geteuid();
  options.self = ::getpid();
  auto all = collect_evidence(**source, options);
  EXPECT_TRUE(all);
  std::set<pid_t> below = {root};
  Evidence chosen;
  for (bool grown = true; grown;) {
    grown = false;
    for (const ProcessEvidence& process : all->processes) {
      if (below.contains(process.facts.ppid)) {
        grown = below.insert(process.facts.key.pid).second || grown;
      }
    }
  }
  for (const ProcessEvidence& process : all->processes) {
    if (below.contains(process.facts.key.pid)) {
      chosen.processes.push_back(process);
    }
  }
  return chosen;
}

std::map<std::string, std::vector<pid_t>> pids_by_role(const Evidence& evidence) {
  std::vector<ProcessFacts> facts;
  for (const ProcessEvidence& process : evidence.processes) {
    facts.push_back(process.facts);
  }
  std::map<std::string, std::vector<pid_t>> pids;
  const auto roles = assign_roles(facts);
  for (std::size_t i = 0; i < facts.size(); ++i) {
    pids[std::string(role_name(roles[i].role))].push_back(facts[i].key.pid);
  }
  return pids;
}

class EachGeneration : public testing::TestWithParam<const char*> {};

TEST_P(EachGeneration, OfTorchHasItsWorkersRecognised) {
  const TrainingTree tree({"--wrapper", "uv", "--workers", "20", "--torch", GetParam()});

  auto roles = pids_by_role(evidence_below(tree.root()));

  EXPECT_THAT(roles["wrapper"], UnorderedElementsAreArray(tree.pids("wrapper")));
  EXPECT_THAT(roles["trainer"], UnorderedElementsAreArray(tree.pids("trainer")));
  EXPECT_THAT(roles["compile_worker"], UnorderedElementsAreArray(tree.pids("compile_worker")));
  EXPECT_THAT(roles["dataloader_worker"],
              UnorderedElementsAreArray(tree.pids("dataloader_worker")));
}

INSTANTIATE_TEST_SUITE_P(Roles, EachGeneration, testing::Values("2.6", "2.14"));

TEST(RealRoles, RecogniseDataloaderWorkersWhereNoWorkerHasAName) {
  const TrainingTree tree(
      {"--wrapper", "bash", "--workers", "0", "--torch", "1.13", "--dataloaders", "4"});

  auto roles = pids_by_role(evidence_below(tree.root()));

  EXPECT_THAT(roles["trainer"], UnorderedElementsAreArray(tree.pids("trainer")));
  EXPECT_THAT(roles["dataloader_worker"],
              UnorderedElementsAreArray(tree.pids("dataloader_worker")));
}

TEST(RealFinder, NamesThePythonProcessAndNotTheWrapperWithReasons) {
  const tests::TempTree folder;
  folder.write("libtorch_cpu.so", std::string(8192, '\0'));
  for (const std::string wrapper : {"uv", "bash"}) {
    const TrainingTree tree(
        {"--wrapper", wrapper, "--workers", "20", "--map", folder.path("libtorch_cpu.so")});

    const FindResult result = rank_candidates(evidence_below(tree.root()));

    ASSERT_TRUE(result.picked) << explain_no_pick(result).one_line();
    const Candidate& found = result.candidates[*result.picked];
    EXPECT_EQ(found.key.pid, tree.trainer());
    EXPECT_NE(found.key.pid, tree.root());
    EXPECT_THAT(found.wrappers, UnorderedElementsAreArray(tree.pids("wrapper")));
    EXPECT_EQ(found.compile_workers, 21U);
    EXPECT_EQ(found.dataloader_workers, 2U);
    EXPECT_THAT(found.reasons, Contains("maps libtorch_cpu.so"));
    EXPECT_THAT(found.reasons, Contains("21 compile workers below it"));
    EXPECT_GE(found.footprint_bytes, 64U << 20U);
  }
}

}  // namespace
}  // namespace tidemark::monitor
