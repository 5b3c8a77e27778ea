// SPDX-License-Identifier: Apache-2.0
#include "report/profile_model.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "common/text.h"

// The fields are those of proto/profile.proto of github.com/google/pprof.
namespace tidemark::report {
namespace {

// Field numbers.
namespace profile_field {
constexpr std::uint32_t kSampleType = 1;
constexpr std::uint32_t kSample = 2;
constexpr std::uint32_t kMapping = 3;
constexpr std::uint32_t kLocation = 4;
constexpr std::uint32_t kFunction = 5;
constexpr std::uint32_t kStringTable = 6;
constexpr std::uint32_t kTimeNanos = 9;
constexpr std::uint32_t kDurationNanos = 10;
constexpr std::uint32_t kPeriodType = 11;
constexpr std::uint32_t kPeriod = 12;
constexpr std::uint32_t kComment = 13;
constexpr std::uint32_t kDefaultSampleType = 14;
}  // namespace profile_field

// Appends the fields of one message in the wire format of protocol buffers. A message within a
// message is written by a writer of its own and given as bytes.
class ProtobufWriter {
 public:
  void varint_field(std::uint32_t field, std::uint64_t value) {
    varint(field << 3U);
    varint(value);
  }
  void bytes_field(std::uint32_t field, std::string_view bytes) {
    varint((field << 3U) | 2U);
    varint(bytes.size());
    out_ += bytes;
  }
  // A number of a packed list; put the finished list in by bytes_field().
  void packed(std::uint64_t value) { varint(value); }

  const std::string& bytes() const { return out_; }
  std::string take() { return std::move(out_); }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) {
      out_ += static_cast<char>((value & 0x7fU) | 0x80U);
    }
    out_ += static_cast<char>(value);
  }

  std::string out_;
};

// The text of the profile must be UTF-8.
std::string readable(std::string_view bytes) { return escape_text(bytes); }

class PprofBuilder {
 public:
  explicit PprofBuilder(const Profile& profile) : profile_(profile) {
    string_index("");  // index 0 is the empty text
  }

  void add_site(const ProfileSite& site);
  std::string finish();

 private:
  std::uint64_t string_index(const std::string& text);
  std::uint64_t mapping_of(const SourceFrame& frame);
  std::uint64_t function_of(const SourceFrame& frame);
  // One location for a frame and the frames that were inlined into it, innermost first.
  std::uint64_t location_of(std::span<const std::uint32_t> frames);
  std::string value_type(const char* type, const char* unit);

  const Profile& profile_;
  ProtobufWriter out_;
  ProtobufWriter strings_;
  std::map<std::string, std::uint64_t, std::less<>> string_index_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> mappings_;  // id, from 1
  struct MappingNames {
    std::uint64_t path;
    std::uint64_t build_id;
    bool has_lines = false;
    bool has_inlined = false;
  };
  std::vector<MappingNames> mapping_names_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> functions_;
  std::map<std::string, std::uint64_t> locations_;  // by their content
};

std::uint64_t PprofBuilder::string_index(const std::string& text) {
  const auto [place, is_new] = string_index_.emplace(text, string_index_.size());
  if (is_new) {
    strings_.bytes_field(profile_field::kStringTable, text);
  }
  return place->second;
}

std::uint64_t PprofBuilder::mapping_of(const SourceFrame& frame) {
  if (frame.module_path.empty()) {
    return 0;
  }
  const auto [place, is_new] =
      mappings_.emplace(std::pair(frame.module_path, frame.build_id), mappings_.size() + 1);
  if (is_new) {
    mapping_names_.push_back(
        {string_index(readable(frame.module_path)), string_index(readable(frame.build_id))});
  }
  MappingNames& names = mapping_names_[place->second - 1];
  names.has_lines |= frame.line.has_value();
  names.has_inlined |= frame.is_inlined;
  return place->second;
}

std::uint64_t PprofBuilder::function_of(const SourceFrame& frame) {
  const auto [place, is_new] =
      functions_.emplace(std::pair(frame.function, frame.file), functions_.size() + 1);
  if (is_new) {
    const std::uint64_t name = string_index(readable(frame.function));
    ProtobufWriter function;
    function.varint_field(1, place->second);
    function.varint_field(2, name);
    function.varint_field(3, name);  // system_name
    function.varint_field(4, string_index(readable(frame.file)));
    out_.bytes_field(profile_field::kFunction, function.bytes());
  }
  return place->second;
}

std::uint64_t PprofBuilder::location_of(std::span<const std::uint32_t> frames) {
  ProtobufWriter content;
  std::uint64_t mapping = 0;
  for (const std::uint32_t frame : frames) {
    mapping = mapping_of(profile_.frames[frame]);
  }
  content.varint_field(2, mapping);
  content.varint_field(3, profile_.frames[frames.front()].offset);
  for (const std::uint32_t number : frames) {
    const SourceFrame& frame = profile_.frames[number];
    ProtobufWriter line;
    line.varint_field(1, function_of(frame));
    line.varint_field(2, frame.line.value_or(0));
    content.bytes_field(4, line.bytes());
  }
  const auto [place, is_new] = locations_.emplace(content.bytes(), locations_.size() + 1);
  if (is_new) {
    ProtobufWriter location;
    location.varint_field(1, place->second);
    out_.bytes_field(profile_field::kLocation, location.take() + content.bytes());
  }
  return place->second;
}

void PprofBuilder::add_site(const ProfileSite& site) {
  ProtobufWriter locations;
  for (std::size_t i = 0; i < site.frames.size();) {
    std::size_t end = i;
    while (profile_.frames[site.frames[end]].is_inlined && end + 1 < site.frames.size()) {
      ++end;
    }
    locations.packed(location_of(std::span(site.frames).subspan(i, end - i + 1)));
    i = end + 1;
  }
  ProtobufWriter values;
  for (const auto measure : {ProfileMeasure::kLiveBytes, ProfileMeasure::kLiveBlocks,
                             ProfileMeasure::kAllocBytes, ProfileMeasure::kAllocBlocks}) {
    values.packed(measure_of(site, measure));
  }
  // A difference may be negative here, other than in a flame graph.
  values.packed(static_cast<std::uint64_t>(std::llround(site.growth_bytes)));
  ProtobufWriter label;
  label.varint_field(1, string_index("kind"));
  label.varint_field(2, string_index(std::string(allocation_kind_label(site.kind))));
  ProtobufWriter sample;
  sample.bytes_field(1, locations.bytes());
  sample.bytes_field(2, values.bytes());
  sample.bytes_field(3, label.bytes());
  out_.bytes_field(profile_field::kSample, sample.bytes());
}

std::string PprofBuilder::value_type(const char* type, const char* unit) {
  ProtobufWriter message;
  message.varint_field(1, string_index(type));
  message.varint_field(2, string_index(unit));
  return message.take();
}

std::string PprofBuilder::finish() {
  const Profile& profile = profile_;
  for (const auto& [type, unit] :
       {std::pair("inuse_space", "bytes"), std::pair("inuse_objects", "count"),
        std::pair("alloc_space", "bytes"), std::pair("alloc_objects", "count"),
        std::pair("growth_space", "bytes")}) {
    out_.bytes_field(profile_field::kSampleType, value_type(type, unit));
  }
  for (std::size_t i = 0; i < mapping_names_.size(); ++i) {
    const MappingNames& names = mapping_names_[i];
    ProtobufWriter mapping;
    mapping.varint_field(1, i + 1);
    mapping.varint_field(5, names.path);
    mapping.varint_field(6, names.build_id);
    mapping.varint_field(7, 1);  // has functions: nobody shall look for better names by themselves
    mapping.varint_field(8, names.has_lines ? 1 : 0);
    mapping.varint_field(9, names.has_lines ? 1 : 0);
    mapping.varint_field(10, names.has_inlined ? 1 : 0);
    out_.bytes_field(profile_field::kMapping, mapping.bytes());
  }
  if (profile.start_unix_ns > 0) {
    out_.varint_field(profile_field::kTimeNanos, static_cast<std::uint64_t>(profile.start_unix_ns));
  }
  if (profile.duration_ns > 0) {
    out_.varint_field(profile_field::kDurationNanos,
                      static_cast<std::uint64_t>(profile.duration_ns));
  }
  out_.bytes_field(profile_field::kPeriodType, value_type("space", "bytes"));
  out_.varint_field(profile_field::kPeriod,
                    profile.sample_every_bytes == 0 ? 1 : profile.sample_every_bytes);
  if (!profile.process.empty()) {
    ProtobufWriter comments;
    comments.packed(string_index(readable(profile.process)));
    out_.bytes_field(profile_field::kComment, comments.bytes());
  }
  out_.varint_field(profile_field::kDefaultSampleType, string_index("inuse_space"));
  return out_.take() + strings_.take();
}

}  // namespace

std::string export_pprof(const Profile& profile) {
  PprofBuilder builder(profile);
  for (const ProfileSite& site : profile.sites) {
    builder.add_site(site);
  }
  return builder.finish();
}

}  // namespace tidemark::report
