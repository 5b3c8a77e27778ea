// SPDX-License-Identifier: Apache-2.0
#include "report/profile_model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "common/json_writer.h"
#include "common/text.h"
#include "tracker/sites/python_code.h"

namespace tidemark::report {
namespace {

constexpr const char* kDeeperFrames = "[deeper frames not recorded]";
constexpr const char* kUnknownStack = "[unknown stack]";

std::string kind_frame(AllocationKind kind) {
  return "[" + std::string(allocation_kind_label(kind)) + "]";
}

// Flame graph tools split a line at the last blank and the stack at every ';'.
std::string folded_name(const std::string& bytes) {
  std::string name = escape_text(bytes);
  std::replace(name.begin(), name.end(), ';', ':');
  return name;
}

// "collate (train.py:42)": such a format has names only.
std::string python_name(const SourceFrame& frame, const tracker::FileNames& files) {
  const tracker::PythonCode code = tracker::python_code(frame);
  const bool is_own_file = code.place == basename_of(frame.file);
  const std::string place = is_own_file ? files.short_name(frame.file) : code.place;
  return place.empty() ? frame.function
         : frame.line  ? fmt::format("{} ({}:{})", frame.function, place, *frame.line)
                       : fmt::format("{} ({})", frame.function, place);
}

// The names in folded stacks, each of them once. A stack is the places of its names in their order,
// so that stacks have the order of their names.
class FoldedStacks {
 public:
  FoldedStacks(const Profile& profile, ProfileMeasure measure) {
    tracker::FileNames files;
    for (const SourceFrame& frame : profile.frames) {
      files.add(frame);
    }
    for (const SourceFrame& frame : profile.frames) {
      own_names_.push_back(folded_name(frame.kind == FrameKind::kPython ? python_name(frame, files)
                                                                        : frame.function));
    }
    process_ = folded_name(profile.process);
    std::set<std::string_view> all(own_names_.begin(), own_names_.end());
    all.insert({process_, kDeeperFrames, kUnknownStack});
    for (int kind = 0; kind <= static_cast<int>(AllocationKind::kCudaRegistered); ++kind) {
      all.insert(kinds_.emplace_back(kind_frame(static_cast<AllocationKind>(kind))));
    }
    names_.assign(all.begin(), all.end());
    for (const std::string& name : own_names_) {
      frames_.push_back(place_of(name));
    }
    for (const ProfileSite& site : profile.sites) {
      if (const std::uint64_t value = measure_of(site, measure); value > 0) {
        stacks_[stack_of(site)] += value;
      }
    }
  }

  Status write(const std::function<Status(const std::string&)>& add) const {
    for (const auto& [stack, value] : stacks_) {
      std::string line;
      for (const std::size_t name : stack) {
        line += line.empty() ? "" : ";";
        line += names_[name];
      }
      line += ' ' + std::to_string(value) + '\n';
      TIDEMARK_TRY(add(line));
    }
    return ok();
  }

 private:
  std::size_t place_of(std::string_view name) const {
    return static_cast<std::size_t>(std::lower_bound(names_.begin(), names_.end(), name) -
                                    names_.begin());
  }

  std::vector<std::size_t> stack_of(const ProfileSite& site) const {
    std::vector<std::size_t> stack;
    if (!process_.empty()) {
      stack.push_back(place_of(process_));
    }
    if (site.truncated) {
      stack.push_back(place_of(kDeeperFrames));
    }
    if (site.frames.empty()) {
      stack.push_back(place_of(kUnknownStack));
    }
    for (auto frame = site.frames.rbegin(); frame != site.frames.rend(); ++frame) {
      stack.push_back(frames_[*frame]);
    }
    if (site.kind != AllocationKind::kHeap) {
      stack.push_back(place_of(kinds_[static_cast<std::size_t>(site.kind)]));
    }
    return stack;
  }

  std::vector<std::string> own_names_;  // by frame
  std::deque<std::string> kinds_;       // by kind
  std::string process_;
  std::vector<std::string_view> names_;  // sorted
  std::vector<std::size_t> frames_;      // places of own_names_ in names_
  std::map<std::vector<std::size_t>, std::uint64_t> stacks_;
};

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

// The frames of all sites, each of them once; those that differ only in their address are one.
class FrameTable {
 public:
  explicit FrameTable(const Profile& profile) {
    for (const SourceFrame& frame : profile.frames) {
      by_frame_.push_back(index_of(frame));
    }
  }

  std::size_t index_of(std::uint32_t frame) const { return by_frame_[frame]; }
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
  std::vector<std::size_t> by_frame_;  // of the profile
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
    stack.push_back(frames.index_of(pseudo_frame(kDeeperFrames)));
  }
  if (site.frames.empty()) {
    stack.push_back(frames.index_of(pseudo_frame(kUnknownStack)));
  }
  for (auto frame = site.frames.rbegin(); frame != site.frames.rend(); ++frame) {
    stack.push_back(frames.index_of(*frame));
  }
  if (site.kind != AllocationKind::kHeap) {
    stack.push_back(frames.index_of(pseudo_frame(kind_frame(site.kind))));
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

Status export_folded(const Profile& profile, ProfileMeasure measure,
                     const std::function<Status(const std::string&)>& add) {
  return FoldedStacks(profile, measure).write(add);
}

std::string export_speedscope(const Profile& profile, const std::vector<ProfileMeasure>& measures) {
  FrameTable frames(profile);
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
