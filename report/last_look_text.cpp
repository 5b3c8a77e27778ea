// SPDX-License-Identifier: Apache-2.0
#include "report/last_look_text.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/units.h"
#include "report/owners_text.h"

namespace tidemark::report {
namespace {

using tracker::AfterLook;
using tracker::LastLook;

constexpr std::size_t kHolderColumns = 120;

std::string holder_path(const LastLook::Holder& holder) {
  const OwnerRecord& record = holder.owner->record();
  switch (record.kind) {
    case OwnerKind::kGarbage:
      return "garbage in cycles";
    case OwnerKind::kNativeHold:
      return "objects that native code holds";
    default:
      break;
  }
  return record.path.empty() ? "(no name)" : shorten(escape_text(record.path), kHolderColumns);
}

std::string what_came_after(const LastLook& last) {
  const std::string before = format_duration(last.before_s);
  switch (last.after) {
    case AfterLook::kOomKill:
      return before + " before the kernel's OOM killer came";
    case AfterLook::kExit:
      return before + " before its process exited";
    case AfterLook::kEndOfRun:
      break;
  }
  return before + " before the end of the run";
}

std::string holder_line(const LastLook& last, const LastLook::Holder& holder, std::size_t columns) {
  const OwnerRecord& record = holder.owner->record();
  std::string text = holder_path(holder);
  if (!record.type.empty()) {
    text += "  " + shorten(escape_text(record.type), 60);
  }
  if (const auto& entries = holder.owner->entries) {
    text += fmt::format(", {} {}", format_grouped(*entries), plural(*entries, "entry", "entries"));
  }
  if (holder.share_of_growth) {
    text +=
        fmt::format(", {} of its growth", format_percent(std::min(1.0, *holder.share_of_growth)));
  }
  const std::string bytes =
      last.has_growth() ? '+' + format_bytes(holder.grown_bytes) : format_bytes(holder.held_bytes);
  return wrap_text(fmt::format("  {:>10}  ", bytes), text, columns);
}

}  // namespace

std::optional<LastLookReport> make_last_look(const tracker::RunOwners& run,
                                             const tracker::JudgeOptions& judge) {
  LastLookReport report;
  report.ranking = tracker::rank_owners(run, tracker::series_options(judge));
  auto last = tracker::find_last_look(run, report.ranking);
  if (!last) {
    return std::nullopt;
  }
  report.last = *std::move(last);
  return report;
}

std::string held_by_text(const LastLook& last) {
  if (last.holders.empty()) {
    return "";
  }
  const LastLook::Holder& first = last.holders.front();
  return fmt::format("held {} before by {} ({}{})", format_duration(last.before_s),
                     holder_path(first), last.has_growth() ? "+" : "",
                     format_bytes(last.has_growth() ? first.grown_bytes : first.held_bytes));
}

std::string last_look_text(const LastLook& last, std::size_t columns) {
  std::string head =
      fmt::format("{}: what {} held", what_came_after(last), owner_process_text(*last.process));
  if (last.holders.empty()) {
    head += " has no name";
  } else if (last.has_growth()) {
    head += fmt::format(" more of than {} earlier", format_duration(last.span_s));
  } else {
    head += last.process->looks.size() < 2 ? " most (what grew takes two looks)" : " most";
  }
  std::string out = wrap_text("last look  ", head, columns);
  for (const LastLook::Holder& holder : last.holders) {
    out += holder_line(last, holder, columns);
  }
  return out;
}

void add_last_look(JsonWriter& json, const LastLook* last) {
  json.object_or_null("last_look", last, [&](const LastLook& look) {
    json.field("pid", look.process->key.pid)
        .field("role", role_name(look.process->role))
        .field("t_s", look.look().t_s)
        .field("after", tracker::after_look_name(look.after))
        .field("before_s", look.before_s)
        .field("looks", look.process->looks.size())
        .field("span_s", look.span_s)
        .field("footprint_bytes", look.look().footprint_bytes)
        .array("holders", look.holders, [&](const LastLook::Holder& holder) {
          json.begin_object()
              .text_field("path", holder.owner->record().path)
              .text_field("type", holder.owner->record().type)
              .field("kind", owner_kind_name(holder.owner->record().kind))
              .field("entries", holder.owner->entries)
              .field("grown_bytes", holder.grown_bytes)
              .field("held_bytes", holder.held_bytes)
              .field("share_of_growth", holder.share_of_growth)
              .end_object();
        });
  });
}

}  // namespace tidemark::report
