// SPDX-License-Identifier: Apache-2.0
#include "tracker/run/phase_growth.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <string>

#include "tracker/curve/curve_window.h"

namespace tidemark::tracker {
namespace {

struct NamePart {
  std::string_view part;
  PhaseKind kind;
};

// The first that matches: "validation_metrics" is an evaluation, "save_log" a checkpoint.
constexpr std::array<NamePart, 14> kNameParts{{{"eval", PhaseKind::kEval},
                                               {"valid", PhaseKind::kEval},
                                               {"test", PhaseKind::kEval},
                                               {"checkpoint", PhaseKind::kCheckpoint},
                                               {"ckpt", PhaseKind::kCheckpoint},
                                               {"save", PhaseKind::kCheckpoint},
                                               {"profil", PhaseKind::kProfile},
                                               {"token", PhaseKind::kTokenize},
                                               {"export", PhaseKind::kExport},
                                               {"jit", PhaseKind::kExport},
                                               {"trace", PhaseKind::kExport},
                                               {"logging", PhaseKind::kLogging},
                                               {"log_", PhaseKind::kLogging},
                                               {"metric", PhaseKind::kLogging}}};

// Where a curve stood when a phase began, at most while it lasted, and right after it.
struct Passage {
  double before_bytes = 0.0;
  double peak_bytes = 0.0;
  double after_bytes = 0.0;
};

std::optional<Passage> passage_through(const Series& series, const Phase& phase) {
  const Cell* before = cell_before(series, phase.from_s);
  const Cell* after = cell_after(series, phase.to_s);
  if (before == nullptr || after == nullptr || after < before) {
    return std::nullopt;
  }
  Passage passage{before->min_bytes, before->min_bytes, after->min_bytes};
  for (const Cell* cell = before; cell <= after; ++cell) {
    passage.peak_bytes = std::max(passage.peak_bytes, cell->max_bytes);
  }
  return passage;
}

}  // namespace

PhaseKind phase_kind(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower == "val" || lower == "log") {
    return lower == "val" ? PhaseKind::kEval : PhaseKind::kLogging;
  }
  const auto* const match = std::find_if(
      kNameParts.begin(), kNameParts.end(),
      [&](const NamePart& entry) { return lower.find(entry.part) != std::string::npos; });
  return match == kNameParts.end() ? PhaseKind::kOther : match->kind;
}

std::vector<Phase> phases_of(const std::vector<RunEvent>& events) {
  std::vector<Phase> phases;
  std::map<std::string_view, double> open;
  for (const RunEvent& event : events) {
    if (event.kind == RunEvent::Kind::kPhaseBegin) {
      open[event.name] = event.t_s;
    } else if (event.kind == RunEvent::Kind::kPhaseEnd) {
      const auto begun = open.find(event.name);
      if (begun != open.end()) {
        phases.push_back({phase_kind(event.name), begun->second, event.t_s});
        open.erase(begun);
      }
    }
  }
  std::stable_sort(phases.begin(), phases.end(),
                   [](const Phase& a, const Phase& b) { return a.from_s < b.from_s; });
  return phases;
}

PhaseGrowth growth_in_phases(const Series& series, const std::vector<Phase>& phases, PhaseKind kind,
                             double threshold_bytes) {
  PhaseGrowth growth;
  std::optional<Passage> last;
  const auto close_gap = [&](double level_bytes) {
    growth.outside_bytes += std::max(level_bytes - last->after_bytes, 0.0);
    const double rise = last->peak_bytes - last->before_bytes;
    if (rise > threshold_bytes) {
      const bool kept = level_bytes > last->before_bytes + rise / 2.0;
      ++(kept ? growth.kept : growth.released);
    }
  };
  for (const Phase& phase : phases) {
    const std::optional<Passage> passage =
        phase.kind == kind ? passage_through(series, phase) : std::nullopt;
    if (!passage) {
      continue;
    }
    if (last) {
      close_gap(passage->before_bytes);
    }
    ++growth.phases;
    growth.rising += passage->peak_bytes - passage->before_bytes > threshold_bytes ? 1U : 0U;
    growth.released += passage->before_bytes - passage->after_bytes > threshold_bytes ? 1U : 0U;
    growth.inside_bytes += passage->peak_bytes - passage->before_bytes;
    last = passage;
  }
  if (last) {
    close_gap(series.cells().back().min_bytes);
  }
  return growth;
}

}  // namespace tidemark::tracker
