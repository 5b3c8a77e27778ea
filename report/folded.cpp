// SPDX-License-Identifier: Apache-2.0
#include "report/folded.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "common/text.h"

namespace tidemark::report {
namespace {

// Flame graph tools split a line at the last blank and the stack at every ';'.
void append_name(std::string& line, const std::string& bytes) {
  if (!line.empty()) {
    line += ';';
  }
  std::string name = escape_text(bytes);
  std::replace(name.begin(), name.end(), ';', ':');
  line += name;
}

std::string folded_stack(const Profile& profile, const ProfileSite& site) {
  std::string line;
  if (!profile.process.empty()) {
    append_name(line, profile.process);
  }
  if (site.truncated) {
    append_name(line, "[deeper frames not recorded]");
  }
  if (site.frames.empty()) {
    append_name(line, "[unknown stack]");
  }
  for (auto frame = site.frames.rbegin(); frame != site.frames.rend(); ++frame) {
    append_name(line, frame->function);
  }
  if (site.kind != AllocationKind::kHeap) {
    append_name(line, "[" + std::string(allocation_kind_label(site.kind)) + "]");
  }
  return line;
}

}  // namespace

std::string export_folded(const Profile& profile, ProfileMeasure measure) {
  std::map<std::string, std::uint64_t> stacks;
  for (const ProfileSite& site : profile.sites) {
    if (const std::uint64_t value = measure_of(site, measure); value > 0) {
      stacks[folded_stack(profile, site)] += value;
    }
  }
  std::string out;
  for (const auto& [stack, value] : stacks) {
    out += stack;
    out += ' ';
    out += std::to_string(value);
    out += '\n';
  }
  return out;
}

}  // namespace tidemark::report
