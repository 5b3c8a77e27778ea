// SPDX-License-Identifier: Apache-2.0
#include "report/profile_model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>

#include "common/json_writer.h"
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

const char* measure_label(ProfileMeasure measure) {
  switch (measure) {
    case ProfileMeasure::kLiveBytes:
      return "live bytes";
    case ProfileMeasure::kLiveBlocks:
      return "live blocks";
    case ProfileMeasure::kGrowthBytes:
      return "growth";
    case ProfileMeasure::kAllocBytes:
      return "allocated bytes";
    case ProfileMeasure::kAllocBlocks:
      return "allocations";
  }
  return "";
}

bool counts_blocks(ProfileMeasure measure) {
  return measure == ProfileMeasure::kLiveBlocks || measure == ProfileMeasure::kAllocBlocks;
}

// The frames of all sites, each of them once.
class FrameTable {
 public:
  std::size_t index_of(const SourceFrame& frame) {
    const auto key = std::tie(frame.function, frame.file, frame.line);
    const auto [place, is_new] = index_.emplace(Key(key), frames_.size());
    if (is_new) {
      frames_.push_back(frame);
    }
    return place->second;
  }

  void write(JsonWriter& json) const {
    json.key("frames").begin_array();
    for (const SourceFrame& frame : frames_) {
      json.begin_object().field("name", frame.function);
      if (!frame.file.empty()) {
        json.field("file", frame.file);
      }
      if (frame.line) {
        json.field("line", *frame.line);
      }
      json.end_object();
    }
    json.end_array();
  }

 private:
  using Key = std::tuple<std::string, std::string, std::optional<std::uint32_t>>;
  std::map<Key, std::size_t> index_;
  std::vector<SourceFrame> frames_;
};

SourceFrame pseudo_frame(std::string name) {
  SourceFrame frame;
  frame.function = std::move(name);
  return frame;
}

// Outermost first, which is what the format wants.
std::vector<std::size_t> stack_of(const ProfileSite& site, FrameTable& frames) {
  std::vector<std::size_t> stack;
  if (site.truncated) {
    stack.push_back(frames.index_of(pseudo_frame("[deeper frames not recorded]")));
  }
  if (site.frames.empty()) {
    stack.push_back(frames.index_of(pseudo_frame("[unknown stack]")));
  }
  for (auto frame = site.frames.rbegin(); frame != site.frames.rend(); ++frame) {
    stack.push_back(frames.index_of(*frame));
  }
  if (site.kind != AllocationKind::kHeap) {
    const std::string kind(allocation_kind_label(site.kind));
    stack.push_back(frames.index_of(pseudo_frame("[" + kind + "]")));
  }
  return stack;
}

void write_profile(JsonWriter& json, const Profile& profile, ProfileMeasure measure,
                   const std::vector<std::vector<std::size_t>>& stacks) {
  std::uint64_t sum = 0;
  json.begin_object().field("type", "sampled");
  json.field("name", profile.process + ": " + measure_label(measure));
  json.field("unit", counts_blocks(measure) ? "none" : "bytes").field("startValue", 0);
  json.key("samples").begin_array();
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    if (measure_of(profile.sites[i], measure) == 0) {
      continue;
    }
    json.begin_array();
    for (const std::size_t frame : stacks[i]) {
      json.value(frame);
    }
    json.end_array();
  }
  json.end_array().key("weights").begin_array();
  for (const ProfileSite& site : profile.sites) {
    if (const std::uint64_t value = measure_of(site, measure); value > 0) {
      json.value(value);
      sum += value;
    }
  }
  json.end_array().field("endValue", sum).end_object();
}

}  // namespace

std::string_view allocation_kind_label(AllocationKind kind) {
  switch (kind) {
    case AllocationKind::kHeap:
      return "heap";
    case AllocationKind::kAnonymousMap:
      return "anonymous map";
    case AllocationKind::kSharedMap:
      return "shared map";
    case AllocationKind::kAllocatorMap:
      return "allocator map";
    case AllocationKind::kCudaDevice:
      return "CUDA device";
    case AllocationKind::kCudaPinned:
      return "CUDA pinned";
    case AllocationKind::kCudaRegistered:
      return "CUDA registered";
  }
  return "unknown";
}

std::uint64_t measure_of(const ProfileSite& site, ProfileMeasure measure) {
  double value = 0.0;
  switch (measure) {
    case ProfileMeasure::kLiveBytes:
      value = site.live_bytes;
      break;
    case ProfileMeasure::kLiveBlocks:
      value = site.live_blocks;
      break;
    case ProfileMeasure::kGrowthBytes:
      value = site.growth_bytes;
      break;
    case ProfileMeasure::kAllocBytes:
      value = site.alloc_bytes;
      break;
    case ProfileMeasure::kAllocBlocks:
      value = site.alloc_blocks;
      break;
  }
  constexpr double kMost = 9.0e18;  // fits into 63 bits, which is what the formats have
  return value > 0.0 ? static_cast<std::uint64_t>(std::llround(std::min(value, kMost))) : 0;
}

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

std::string export_speedscope(const Profile& profile, const std::vector<ProfileMeasure>& measures) {
  FrameTable frames;
  std::vector<std::vector<std::size_t>> stacks;
  for (const ProfileSite& site : profile.sites) {
    stacks.push_back(stack_of(site, frames));
  }
  JsonWriter json;
  json.begin_object();
  json.field("$schema", "https://www.speedscope.app/file-format-schema.json");
  json.field("name", profile.process).field("exporter", "tidemark").field("activeProfileIndex", 0);
  json.key("shared").begin_object();
  frames.write(json);
  json.end_object().key("profiles").begin_array();
  for (const ProfileMeasure measure : measures) {
    write_profile(json, profile, measure, stacks);
  }
  json.end_array().end_object();
  return json.take();
}

}  // namespace tidemark::report
