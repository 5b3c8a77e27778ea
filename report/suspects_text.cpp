// SPDX-License-Identifier: Apache-2.0
#include "report/suspects_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/units.h"

namespace tidemark::report {
namespace {

using tracker::SuspectRow;
using tracker::SuspectRows;
using tracker::SuspectRule;
using tracker::SuspectState;

std::string name_of(const SuspectRow& row) {
  return fmt::format("`{}`", row.what.empty() ? "(no name)" : shorten(escape_text(row.what), 100));
}

std::string bytes_of(const std::optional<double>& bytes) {
  return bytes ? format_bytes(std::max(0.0, *bytes)) : "?";
}

// ", 97 % of the growth"; "" where that is not known.
std::string growth_share_text(const SuspectRow& row) {
  return row.share ? fmt::format(", {} of the growth", format_percent(std::min(1.0, *row.share)))
                   : "";
}

std::string at_all_looks(const SuspectRow& row) {
  return row.looks == 2 ? "at both looks" : fmt::format("at all {} looks", row.looks);
}

std::string processes_of(const SuspectRow& row) {
  return format_count(row.processes.value_or(0), "process", "processes");
}

std::string found_text(const SuspectRow& row) {
  switch (row.rule) {
    case SuspectRule::kOwnerGrows:
      return fmt::format("{} grew by {}{}", name_of(row), bytes_of(row.growth_bytes),
                         growth_share_text(row));
    case SuspectRule::kGraphTensorsGrow:
      return fmt::format("tensors that are kept with their graph grew by {}{}: detach() or item()",
                         bytes_of(row.growth_bytes), growth_share_text(row));
    case SuspectRule::kGarbageGrows:
      return fmt::format("{} more of objects that only refer to each other and are not freed{}",
                         bytes_of(row.growth_bytes), growth_share_text(row));
    case SuspectRule::kProcessesGrow:
      return fmt::format("{}, which grew by {}{}", processes_of(row), bytes_of(row.growth_bytes),
                         growth_share_text(row));
    case SuspectRule::kLineGrows:
      return fmt::format("{} allocated {} of what is kept{}", name_of(row),
                         bytes_of(row.growth_bytes), growth_share_text(row));
    case SuspectRule::kCauseFits:
      return fmt::format("the run has the signature of {}", name_of(row));
    default:
      return fmt::format("an intervention freed {}", bytes_of(row.bytes));
  }
}

std::string excluded_text(const SuspectRow& row) {
  switch (row.rule) {
    case SuspectRule::kOwnerConstant:
      return fmt::format("{} held {} {}", name_of(row), bytes_of(row.bytes), at_all_looks(row));
    case SuspectRule::kOwnerStopped:
      return fmt::format("{} grew by {} and stands still now", name_of(row),
                         bytes_of(row.growth_bytes));
    case SuspectRule::kOwnerSmall:
      return fmt::format("{} grew by {}{}", name_of(row), bytes_of(row.growth_bytes),
                         growth_share_text(row));
    case SuspectRule::kGraphTensorsConstant:
      return fmt::format("tensors in graphs hold {}, no more than at first", bytes_of(row.bytes));
    case SuspectRule::kNoGarbage:
      return row.bytes.value_or(0.0) > 0.0
                 ? fmt::format("garbage in cycles holds {}, and that does not grow",
                               bytes_of(row.bytes))
                 : fmt::format("no garbage was found {}", at_all_looks(row));
    case SuspectRule::kProcessesConstant:
      return fmt::format("{} with {}, constant", processes_of(row), bytes_of(row.bytes));
    case SuspectRule::kNoProcesses:
      return "there are none";
    case SuspectRule::kOthersHoldIt:
      return fmt::format("{} holds the growth{}", name_of(row),
                         row.share.value_or(1.0) >= 0.995
                             ? ""
                             : fmt::format(", with others {} of it", format_percent(*row.share)));
    case SuspectRule::kPastEpoch:
      return fmt::format("growth went on for {:.1f} epochs, in which every sample has come",
                         row.epochs.value_or(0.0));
    case SuspectRule::kNothingGrows:
      return "the job does not grow";
    default:
      return fmt::format("an intervention freed {}", bytes_of(row.bytes));
  }
}

std::string open_text(const SuspectRow& row) {
  switch (row.rule) {
    case SuspectRule::kOneLook:
      return "one look at the objects; a second one tells (tidemark owners)";
    case SuspectRule::kPartialLooks:
      return "not all objects were reached; tidemark owners with a larger --budget tells";
    case SuspectRule::kNotFound:
      return "nothing of its name was seen, and the objects do not explain the growth; tidemark "
             "profile tells";
    case SuspectRule::kUnnamedOwner:
      return fmt::format("{} holds the growth{}; its name does not say what it is for",
                         name_of(row),
                         growth_share_text(row).empty() ? "" : growth_share_text(row));
    case SuspectRule::kNotWatched:
      return "the processes were not watched; tidemark track tells";
    case SuspectRule::kTooEarly:
      return "too early for a verdict on the processes; tidemark track tells";
    default:
      return "nobody looked at the objects; tidemark owners tells";
  }
}

// In a word or two, for a line of many.
std::string short_reason(const SuspectRow& row) {
  switch (row.rule) {
    case SuspectRule::kOwnerConstant:
      return bytes_of(row.bytes) + ", constant";
    case SuspectRule::kOwnerStopped:
      return bytes_of(row.bytes) + ", stands still now";
    case SuspectRule::kOwnerSmall:
      return row.share ? fmt::format("{} of the growth", format_percent(*row.share)) : "small";
    case SuspectRule::kGraphTensorsConstant:
      return "graphs constant";
    case SuspectRule::kNoGarbage:
      return row.bytes.value_or(0.0) > 0.0 ? bytes_of(row.bytes) + ", constant" : "none";
    case SuspectRule::kProcessesConstant:
      return processes_of(row) + ", constant";
    case SuspectRule::kNoProcesses:
      return "none";
    case SuspectRule::kOthersHoldIt:
      return "others hold the growth";
    case SuspectRule::kPastEpoch:
      return "grows past the epoch";
    case SuspectRule::kNothingGrows:
      return "nothing grows";
    default:
      return fmt::format("{} freed", bytes_of(row.bytes));
  }
}

std::string_view state_text(SuspectState state) {
  constexpr std::array<std::string_view, 3> kTexts{"THIS IS IT", "not it", "cannot tell"};
  return kTexts[static_cast<std::size_t>(state)];
}

constexpr std::array kOrder = {SuspectState::kThisIsIt, SuspectState::kNotIt,
                               SuspectState::kCannotTell};

}  // namespace

std::string_view suspect_text(tracker::Suspect suspect) {
  constexpr std::array<std::string_view, tracker::kSuspectCount> kTexts{
      "dataset loading",   "gradient accumulation",
      "log_history",       "tokenizer and processor caches",
      "garbage in cycles", "optimizer state",
      "compile workers",   "metrics lists",
      "collator"};
  return kTexts[static_cast<std::size_t>(suspect)];
}

std::string suspect_reason_text(const SuspectRow& row) {
  return row.state == SuspectState::kThisIsIt ? found_text(row)
         : row.state == SuspectState::kNotIt  ? excluded_text(row)
                                              : open_text(row);
}

std::string suspects_table(const SuspectRows& rows, std::size_t columns) {
  std::string out;
  for (const SuspectState state : kOrder) {
    for (const SuspectRow& row : rows) {
      if (row.state == state) {
        out += wrap_text(
            fmt::format("{:<11}  {:<30}  ", state_text(row.state), suspect_text(row.suspect)),
            suspect_reason_text(row), columns);
      }
    }
  }
  return out;
}

// Those of one reason stand together.
std::string excluded_suspects_text(const SuspectRows& rows) {
  std::vector<std::pair<std::string, std::vector<std::string_view>>> reasons;
  for (const SuspectRow& row : rows) {
    if (row.state != SuspectState::kNotIt) {
      continue;
    }
    const std::string reason = short_reason(row);
    auto known = std::find_if(reasons.begin(), reasons.end(),
                              [&](const auto& each) { return each.first == reason; });
    if (known == reasons.end()) {
      known = reasons.insert(reasons.end(), {reason, {}});
    }
    known->second.push_back(suspect_text(row.suspect));
  }
  std::vector<std::string> texts;
  for (const auto& [reason, names] : reasons) {
    texts.push_back(fmt::format("{} ({})", fmt::join(names, ", "), reason));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string open_suspects_text(const SuspectRows& rows) {
  std::vector<std::string_view> texts;
  for (const SuspectRow& row : rows) {
    if (row.state == SuspectState::kCannotTell) {
      texts.push_back(suspect_text(row.suspect));
    }
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

void add_suspects(JsonWriter& json, const SuspectRows& rows) {
  const auto whole = [](const std::optional<double>& bytes) {
    return bytes ? std::optional<std::int64_t>(std::llround(*bytes)) : std::nullopt;
  };
  json.array("suspects", rows, [&](const SuspectRow& row) {
    json.begin_object()
        .field("suspect", tracker::suspect_name(row.suspect))
        .field("state", tracker::suspect_state_name(row.state))
        .field("rule", tracker::suspect_rule_name(row.rule))
        .text_field("what", row.what)
        .field("bytes", whole(row.bytes))
        .field("growth_bytes", whole(row.growth_bytes))
        .field("share", row.share)
        .field("processes", row.processes)
        .field("epochs", row.epochs)
        .field("looks", row.looks)
        .field("because", suspect_reason_text(row))
        .end_object();
  });
}

}  // namespace tidemark::report
