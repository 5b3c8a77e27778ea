// SPDX-License-Identifier: Apache-2.0
#include "monitor/roles/candidate_score.h"

#include <unistd.h>

#include <utility>

#include <fmt/format.h>

#include "common/text.h"
#include "common/units.h"
#include "monitor/roles/command.h"
#include "monitor/roles/training_names.h"

namespace tidemark::monitor {
namespace {

constexpr std::uint64_t kBigBytes = 100 * kMiB;
constexpr std::uint64_t kMuchGpuBytes = 256 * kMiB;  // more than a desktop program takes
constexpr double kLongCpuSeconds = 60;

// Points are compared between candidates only; the tiers of Confidence come first.
void add(Assessment& assessment, int points, std::string reason) {
  assessment.score += points;
  assessment.reasons.push_back(std::move(reason));
}

std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{} below it", count, what, count == 1 ? "" : "s");
}

double cpu_seconds(const ProcessFacts& facts) {
  static const long kTicksPerSecond = ::sysconf(_SC_CLK_TCK);
  return static_cast<double>(facts.cpu_ticks) / static_cast<double>(kTicksPerSecond);
}

void add_workers(Assessment& assessment, const WorkerCounts& workers, bool framework) {
  if (workers.named == 0 && !framework) {
    return;  // the pool of any Python program
  }
  if (workers.compile_workers > 0) {
    add(assessment, 40, counted(workers.compile_workers, "compile worker"));
  }
  if (workers.dataloader_workers > 0) {
    add(assessment, 40, counted(workers.dataloader_workers, "DataLoader worker"));
  }
}

void add_gpu(Assessment& assessment, const ProcessEvidence& evidence) {
  if (evidence.gpu_bytes.value_or(0) > 0) {
    add(assessment, 25, fmt::format("holds {} of GPU memory", format_bytes(*evidence.gpu_bytes)));
  } else if (!evidence.gpu_device.empty()) {
    add(assessment, 15, fmt::format("has {} open", escape_text(evidence.gpu_device)));
  } else if (!evidence.libraries.gpu.empty()) {
    add(assessment, 5, fmt::format("maps {}", escape_text(evidence.libraries.gpu)));
  }
}

void add_size(Assessment& assessment, const ProcessFacts& facts) {
  const std::uint64_t bytes = facts.footprint_bytes;
  if (bytes >= kBigBytes) {
    const int points = bytes >= 10 * kGiB ? 8 : bytes >= kGiB ? 5 : 2;
    add(assessment, points, fmt::format("footprint {}", format_bytes(bytes)));
  }
  if (const double seconds = cpu_seconds(facts); seconds >= kLongCpuSeconds) {
    add(assessment, seconds >= 3600 ? 5 : 3,
        fmt::format("has used {} of CPU time", format_duration(seconds)));
  }
}

Confidence confidence_of(const ProcessEvidence& evidence, const RoleAssignment& role,
                         const WorkerCounts& workers, const TrainingWords& words) {
  const bool framework = !evidence.libraries.framework.empty();
  const bool named = !words.name.empty() || !words.argument.empty();
  const bool on_gpu = evidence.gpu_bytes.value_or(0) > 0 || !evidence.gpu_device.empty();
  const bool several_ranks = role.role == Role::kRank && !role.inferred;
  if (workers.named > 0 || several_ranks ||
      (framework && (named || on_gpu || role.rank || role.role == Role::kRank))) {
    return Confidence::kCertain;
  }
  const Command command = parse_command(evidence.facts.argv);
  const bool big_enough = command.python || evidence.facts.footprint_bytes >= kBigBytes;
  if (framework || evidence.gpu_bytes.value_or(0) >= kMuchGpuBytes ||
      (!words.name.empty() && big_enough)) {
    return Confidence::kLikely;
  }
  return Confidence::kWeak;
}

}  // namespace

Assessment assess(const ProcessEvidence& evidence, const RoleAssignment& role,
                  const WorkerCounts& workers) {
  const Command command = parse_command(evidence.facts.argv);
  const TrainingWords words = training_words(command);
  const bool framework = !evidence.libraries.framework.empty();
  Assessment assessment;
  assessment.confidence = confidence_of(evidence, role, workers, words);
  if (framework) {
    add(assessment, 40, fmt::format("maps {}", escape_text(evidence.libraries.framework)));
  }
  add_workers(assessment, workers, framework);
  add_gpu(assessment, evidence);
  if (role.rank) {
    add(assessment, 20, fmt::format("its rank is {}", *role.rank));
  } else if (!evidence.job_variables.empty()) {
    add(assessment, 10, fmt::format("{} is set", evidence.job_variables.front()));
  }
  if (!words.name.empty()) {
    add(assessment, 20, fmt::format("named like training: {}", escape_text(words.name)));
  }
  if (!words.argument.empty()) {
    add(assessment, 5, fmt::format("has the argument {}", escape_text(words.argument)));
  }
  if (command.python) {
    add(assessment, 5, "runs python");
  }
  add_size(assessment, evidence.facts);
  return assessment;
}

bool is_worth_showing(const ProcessEvidence& evidence, Confidence confidence) {
  return confidence > Confidence::kWeak ||
         (parse_command(evidence.facts.argv).python && evidence.facts.footprint_bytes >= kBigBytes);
}

}  // namespace tidemark::monitor
