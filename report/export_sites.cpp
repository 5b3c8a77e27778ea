// SPDX-License-Identifier: Apache-2.0
#include "report/export_sites.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/exit_code.h"
#include "common/messages.h"
#include "common/units.h"
#include "report/output.h"
#include "report/profile_model.h"
#include "tracker/sites/stack_lines.h"

namespace tidemark::report {
namespace {

SourceFrame source_frame(const tracker::RunSites& run, const tracker::ShownFrame& shown) {
  const FrameRecord& record = *shown.frame;
  SourceFrame frame{record, std::string(shown.module), ""};
  if (const auto module = record.module ? run.modules.find(*record.module) : run.modules.end();
      module != run.modules.end()) {
    frame.build_id = module->second.build_id;
  }
  if (frame.kind == FrameKind::kPython) {
    frame.function = tracker::python_function(frame.function);
  }
  return frame;
}

// Whether a process had ended by then, and not just with the run.
bool is_gone(const tracker::TracedProcess& process, double t_s) {
  constexpr double kAboutNowS = 2.0;
  return process.last.has_ended && process.last.t_s + kAboutNowS < t_s;
}

// What growth is counted from. A site that came later held nothing before; nor does one that has
// gone with its process, unless somebody asks for a time when it was there.
double live_before(const tracker::RunSites& run, const tracker::TracedProcess& process,
                   const tracker::SiteTrack& site, std::optional<double> from_s) {
  if (is_gone(process, from_s.value_or(run.end_s))) {
    return 0.0;
  }
  return from_s ? value_at(site.live, *from_s).value_or(0.0)
                : static_cast<double>(site.first_live_bytes);
}

// Blocks in so many live bytes: of the size of those that live at the end, else of all.
double blocks_in(double bytes, const SiteSample& last) {
  const auto ratio = [bytes](std::uint64_t blocks, std::uint64_t of_bytes) {
    return bytes * (static_cast<double>(blocks) / static_cast<double>(of_bytes));
  };
  if (last.live_bytes > 0) {
    return ratio(last.live_blocks, last.live_bytes);
  }
  return last.alloc_bytes > 0 ? ratio(last.alloc_blocks, last.alloc_bytes) : 0.0;
}

std::string process_label(const tracker::RunSites& run) {
  if (run.traced_processes() != 1) {
    return fmt::format("{} processes", run.traced_processes());
  }
  const tracker::TracedProcess& process = run.processes.front();
  return fmt::format("{} {}", role_name(process.role), process.key.pid);
}

Result<ExportOutput> open_output(const ExportOptions& options) {
  const bool is_stdout = options.output.empty() || options.output == "-";
  return is_stdout ? Result<ExportOutput>(ExportOutput::to_stdout())
                   : ExportOutput::to_file(options.output, options.force);
}

Status write(const Profile& profile, const ExportOptions& options, ExportOutput& output) {
  if (options.format == "folded") {
    return export_folded(profile,
                         options.from_s ? ProfileMeasure::kGrowthBytes : ProfileMeasure::kLiveBytes,
                         [&](const std::string& line) {
                           output.buffer() += line;
                           return output.write_if_full();
                         });
  }
  if (options.format == "pprof") {
    output.buffer() += export_pprof(profile);
    return ok();
  }
  std::vector<ProfileMeasure> measures = {ProfileMeasure::kLiveBytes, ProfileMeasure::kGrowthBytes};
  if (options.from_s) {
    std::swap(measures[0], measures[1]);
  }
  output.buffer() += export_speedscope(profile, measures);
  return ok();
}

// The frames of the sites of a run, each of them once.
class FrameIndex {
 public:
  FrameIndex(const tracker::RunSites& run, std::vector<SourceFrame>& frames)
      : run_(run), frames_(frames) {}

  std::uint32_t of(const tracker::ShownFrame& shown) {
    const auto [it, is_new] =
        index_.try_emplace(shown.frame->frame, static_cast<std::uint32_t>(frames_.size()));
    if (is_new) {
      frames_.push_back(source_frame(run_, shown));
    }
    return it->second;
  }

 private:
  const tracker::RunSites& run_;
  std::vector<SourceFrame>& frames_;
  std::unordered_map<std::uint32_t, std::uint32_t> index_;  // by number of the run
};

}  // namespace

bool is_site_format(std::string_view format) {
  return format == "folded" || format == "pprof" || format == "speedscope";
}

Profile make_profile(const tracker::RunSites& run, std::optional<double> from_s,
                     std::optional<double> to_s, std::optional<std::int64_t> start_wall_ns) {
  Profile profile;
  profile.process = process_label(run);
  const double end_s = std::min(to_s.value_or(run.end_s), run.end_s);
  const auto ns_of = [](double seconds) {
    return static_cast<std::int64_t>(seconds * static_cast<double>(kNsPerSecond));
  };
  profile.duration_ns = ns_of(end_s - from_s.value_or(0.0));
  profile.start_unix_ns = start_wall_ns ? *start_wall_ns + ns_of(from_s.value_or(0.0)) : 0;
  FrameIndex frames(run, profile.frames);
  for (const tracker::TracedProcess& process : run.processes) {
    profile.sample_every_bytes =
        process.last.sample_every_bytes.value_or(profile.sample_every_bytes);
    for (const std::size_t i : process.sites) {
      const tracker::SiteTrack& site = run.sites[i];
      if (is_counted_elsewhere(site.record.kind)) {
        continue;
      }
      ProfileSite& into = profile.sites.emplace_back();
      into.kind = site.record.kind;
      into.truncated = site.record.is_truncated;
      for (const tracker::ShownFrame& frame : tracker::frames_of(run, site.record.frames)) {
        into.frames.push_back(frames.of(frame));
      }
      into.live_bytes = is_gone(process, end_s) ? 0.0
                        : to_s                  ? value_at(site.live, *to_s).value_or(0.0)
                                                : static_cast<double>(site.last.live_bytes);
      into.live_blocks = blocks_in(into.live_bytes, site.last);
      into.growth_bytes = into.live_bytes - live_before(run, process, site, from_s);
      into.alloc_bytes = static_cast<double>(site.last.alloc_bytes);
      into.alloc_blocks = static_cast<double>(site.last.alloc_blocks);
    }
  }
  return profile;
}

int export_sites(recording::RecordingReader& reader, const ExportOptions& options) {
  tracker::SiteTrackBuilder builder;
  const auto summary = reader.read(builder);
  if (!summary) {
    print_error(summary.error());
    return kExitTarget;
  }
  print_read_notes(*summary);
  if (builder.sites().empty()) {
    print_error("the recording has no call stacks",
                "tidemark profile -o FILE -- COMMAND records them");
    return kExitTarget;
  }
  if (options.from_s.value_or(0.0) > builder.sites().end_s) {
    print_error(fmt::format("--from is behind the end of the recording, which is {} long",
                            format_duration(builder.sites().end_s)));
    return kExitUsage;
  }
  const Profile profile =
      make_profile(builder.sites(), options.from_s, options.to_s, reader.info().start_wall_ns);
  auto output = open_output(options);
  if (!output) {
    print_error(output.error());
    return kExitTarget;
  }
  Status written = write(profile, options, *output);
  if (written) {
    written = output->finish();
  }
  if (!written) {
    print_error(written.error());
    return kExitTarget;
  }
  return kExitOk;
}

}  // namespace tidemark::report
