// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/records.h"
#include "tests/support/sample_run.h"

namespace tidemark::tests {

inline constexpr std::uint64_t kSiteMiB = std::uint64_t{1} << 20U;

// A traced run made by hand, tick by tick: one tick a second, one look at each. Every site is a
// function from the second to its live bytes.
class SiteRun {
 public:
  using Curve = std::function<std::uint64_t(double t_s)>;

  // Adds a frame and returns its number.
  std::uint32_t add_frame(const std::string& function, const std::string& file = "",
                          std::optional<std::uint32_t> line = {},
                          const std::string& module = "/home/me/train") {
    FrameRecord frame;
    frame.frame = static_cast<std::uint32_t>(frames_.size() + 1);
    frame.function = function;
    frame.file = file;
    frame.line = line;
    if (!module.empty()) {
      ModuleRecord record;
      record.module = static_cast<std::uint32_t>(modules_.size() + 1);
      record.path = module;
      frame.module = record.module;
      modules_.push_back(record);
    }
    frames_.push_back(frame);
    return frame.frame;
  }

  std::uint32_t add_python(const std::string& function, const std::string& file,
                           std::optional<std::uint32_t> line) {
    add_frame(function, file, line, "");
    frames_.back().kind = FrameKind::kPython;
    return frames_.back().frame;
  }

  std::uint32_t add_thread_start() {
    add_frame("[thread started by]", "", {}, "");
    frames_.back().kind = FrameKind::kThreadStart;
    return frames_.back().frame;
  }

  std::uint32_t add_site(const ProcessKey& key, std::vector<std::uint32_t> frames, Curve curve,
                         AllocationKind kind = AllocationKind::kHeap) {
    SiteRecord site;
    site.site = static_cast<std::uint32_t>(sites_.size() + 1);
    site.key = key;
    site.kind = kind;
    site.frames = std::move(frames);
    sites_.push_back(site);
    curves_.push_back(std::move(curve));
    return site.site;
  }

  // What part of a site's bytes is resident.
  std::function<std::optional<double>(std::uint32_t site)> resident = [](std::uint32_t) {
    return std::optional<double>();
  };
  std::uint64_t base_bytes = 100 * kSiteMiB;  // of each process, in no site
  Curve unseen = [](double) { return 0; };    // likewise, and it changes
  bool with_steps = false;                    // ten a second
  bool ends = false;                          // the last look is after the end

  void add_process(const ProcessRecord& process) { processes_.push_back(process); }

  std::vector<Tick> ticks(std::size_t seconds) const {
    std::vector<Tick> all;
    for (std::size_t n = 0; n < seconds; ++n) {
      all.push_back(tick(n, n + 1 == seconds));
    }
    return all;
  }

 private:
  std::uint64_t live_of(const ProcessKey& key, double t_s) const {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      if (sites_[i].key == key && !is_counted_elsewhere(sites_[i].kind)) {
        bytes += curves_[i](t_s);
      }
    }
    return bytes;
  }

  Tick tick(std::size_t n, bool is_last) const {
    Tick tick;
    const auto t_s = static_cast<double>(n);
    tick.t_s = t_s;
    if (n == 0) {
      tick.new_processes = processes_;
      tick.allocations.modules = modules_;
      tick.allocations.frames = frames_;
      tick.allocations.sites = sites_;
    }
    if (with_steps) {
      tick.step = static_cast<std::int64_t>(n) * 10;
      tick.markers.push_back({t_s, processes_.front().key, MarkerKind::kStep, *tick.step, ""});
    }
    for (const ProcessRecord& process : processes_) {
      const std::uint64_t live = live_of(process.key, t_s);
      TraceSample trace = trace_sample(process.key, t_s);
      trace.mode = TraceMode::kExact;
      trace.live_bytes = live;
      trace.sites = sites_.size();
      trace.freed_blocks = 1'000;
      trace.file_bytes = kSiteMiB;
      trace.has_ended = ends && is_last;
      tick.allocations.traces.push_back(trace);
      ProcessSample sample;
      sample.key = process.key;
      sample.rss_bytes = base_bytes + unseen(t_s) + live;
      sample.rss_anon_bytes = base_bytes + unseen(t_s) + live;
      sample.rss_shmem_bytes = 0;
      sample.rss_file_bytes = 5 * kSiteMiB;
      sample.state = 'R';
      tick.processes.push_back(sample);
    }
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      const std::uint64_t live = curves_[i](t_s);
      SiteSample sample = site_sample(sites_[i].site, live, live / 65'536);
      sample.alloc_bytes = 2 * live;
      sample.peak_bytes = live;
      if (const auto share = resident(sites_[i].site)) {
        sample.resident_bytes = static_cast<std::uint64_t>(*share * static_cast<double>(live));
      }
      tick.allocations.samples.push_back(sample);
    }
    return tick;
  }

  std::vector<ProcessRecord> processes_;
  std::vector<ModuleRecord> modules_;
  std::vector<FrameRecord> frames_;
  std::vector<SiteRecord> sites_;
  std::vector<Curve> curves_;
};

// The shapes that a site may have.
inline SiteRun::Curve constant(std::uint64_t bytes) {
  return [bytes](double) { return bytes; };
}
inline SiteRun::Curve rising(std::uint64_t bytes_per_s, std::uint64_t from = 0) {
  return [=](double t_s) { return from + static_cast<std::uint64_t>(t_s) * bytes_per_s; };
}

}  // namespace tidemark::tests
