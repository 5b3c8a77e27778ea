// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "recording/reader.h"
#include "report/export.h"
#include "report/profile_model.h"
#include "tracker/sites/site_tracks.h"

namespace tidemark::report {

// "folded", "pprof", "speedscope".
bool is_site_format(std::string_view format);

// The sites of a run as a profile: live bytes at `to_s` (default: the end), and what they grew by
// since `from_s` (default: the first look). Processes that had ended by then hold nothing.
// `start_wall_ns` is when the run began.
Profile make_profile(const tracker::RunSites& run, std::optional<double> from_s,
                     std::optional<double> to_s, std::optional<std::int64_t> start_wall_ns = {});

// `tidemark export` into a format of call stacks.
int export_sites(recording::RecordingReader& reader, const ExportOptions& options);

}  // namespace tidemark::report
