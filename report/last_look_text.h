// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "common/json_writer.h"
#include "common/text.h"
#include "tracker/owners/last_look.h"
#include "tracker/run/judged_run.h"

// Who held the memory shortly before a job ended, in words. All of it is escaped.
namespace tidemark::report {

// What the looks of a run say of its end. The run outlives it.
struct LastLookReport {
  tracker::OwnerRanking ranking;
  tracker::LastLook last;
};
// nullopt: there is no look.
std::optional<LastLookReport> make_last_look(const tracker::RunOwners& run,
                                             const tracker::JudgeOptions& judge);

// "held 4.0 s before by __main__.collator.cache (+1.20 GiB)"; "": nothing large has a name.
std::string held_by_text(const tracker::LastLook& last);
// When it was, at whom, and a line for each holder.
std::string last_look_text(const tracker::LastLook& last, std::size_t columns = kLineColumns);
// "last_look":{...} or null, as docs/output.md has it.
void add_last_look(JsonWriter& json, const tracker::LastLook* last);

}  // namespace tidemark::report
