// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "common/records.h"

namespace tidemark::tests {

// A run in which every field of every record has a value of its own, and, one tick later, every
// field that may be unknown is unknown.
inline RunInfo full_run_info() {
  RunInfo info;
  info.tool_version = "1.2.3";
  info.host = "box";
  info.kernel = "6.18.0";
  info.command = "python train.py --token ***";
  info.format = "tidemark";
  info.start_wall_ns = 1'700'000'000'123'456'789;
  info.physical_bytes = 64'000'000'000;
  info.limit_bytes = 32'000'000'000;
  info.limit_source = "cgroup v2 /user.slice";
  info.interval_s = 0.25;
  return info;
}

inline ProcessRecord trainer_record() {
  ProcessRecord process;
  process.key = {101, 5'000};
  process.ppid = 100;
  process.role = Role::kTrainer;
  process.comm = "python3";
  process.argv = "python3 train.py";
  return process;
}

inline ProcessRecord worker_record() {
  ProcessRecord process;
  process.key = {102, 5'001};
  process.ppid = 101;
  process.role = Role::kRank;
  process.rank = 3;
  process.comm = std::string("pt\xff\x01 \"x\"", 8);  // names are bytes
  process.argv = "python3\nworker";
  process.started_s = 1.5;
  return process;
}

inline TraceSample trace_sample(const ProcessKey& key, double t_s) {
  TraceSample trace;
  trace.key = key;
  trace.t_s = t_s;
  return trace;
}

inline SiteSample site_sample(std::uint32_t site, std::uint64_t live_bytes,
                              std::uint64_t live_blocks = 1) {
  SiteSample sample;
  sample.site = site;
  sample.live_bytes = live_bytes;
  sample.live_blocks = live_blocks;
  return sample;
}

inline AllocationFacts full_allocations() {
  AllocationFacts facts;
  facts.modules = {{1, "/opt/lib\xfftorch.so", "ab12"}, {2, "/usr/bin/python3", ""}};
  facts.frames = {{1, FrameKind::kNative, 1, 0x1234, "collate()", "/src/train.cpp", 42, true},
                  {2, FrameKind::kPython, {}, 7, "step", "", {}, false}};
  facts.sites = {{1, trainer_record().key, AllocationKind::kAnonymousMap, true, {1, 2, 1}},
                 {2, worker_record().key, AllocationKind::kCudaPinned, false, {}}};
  facts.samples = {{1, 10, 2, 30, 4, 50, 6, 7}, {2, 1, 1, 1, 1, 1, 1, {}}};
  facts.ages = {{1, {{false, 3.0, 4}, {true, 9.0, 6}}}};
  TraceSample exact = trace_sample(trainer_record().key, 1.25);
  exact.mode = TraceMode::kExact;
  exact.sites = 3, exact.live_bytes = 4, exact.live_blocks = 5, exact.rest_bytes = 6;
  exact.rest_blocks = 7, exact.freed_blocks = 8, exact.unknown_frees = 9;
  exact.dropped_records = 10, exact.truncated_stacks = 11, exact.empty_stacks = 12;
  exact.file_bytes = 13, exact.private_bytes = 14, exact.has_ended = true;
  exact.problem = "the file could not grow";
  TraceSample sampled = trace_sample(worker_record().key, 1.5);
  sampled.sample_every_bytes = 524'288;
  facts.traces = {exact, sampled};
  facts.accounts = {{trainer_record().key, 1.25, 15, 16, 17, 18}};
  facts.shm = ShmGrowthReport{19, 3, {{"torch\xff_1", 20, 21, true, 22}, {"x", 23, 24, {}, {}}}};
  return facts;
}

inline Tick full_tick() {
  Tick tick;
  tick.t_s = 1.5;
  tick.late_s = 0.001;
  tick.step = 7;
  tick.epoch = 1;
  tick.tree = {2, 3'000'000, 1'000, 2'500'000, true, 2'600'000, 1};
  tick.roles = {{Role::kTrainer, {1, 2'000'000, 600, 1'500'000, false, 1'700'000, 0}},
                {Role::kRank, {1, 1'000'000, 400, 1'000'000, true, {}, 1}}};
  tick.new_processes = {trainer_record(), worker_record()};
  ProcessSample sample;
  sample.key = trainer_record().key;
  sample.rss_bytes = 1;
  sample.rss_anon_bytes = 2;
  sample.rss_file_bytes = 3;
  sample.rss_shmem_bytes = 4;
  sample.swap_bytes = 5;
  sample.hwm_bytes = 6;
  sample.pss_bytes = 7;
  sample.pss_footprint_bytes = 8;
  sample.uss_bytes = 9;
  sample.pss_age_s = 0.75;
  sample.threads = 10;
  sample.state = 'S';
  ProcessSample unknown;
  unknown.key = worker_record().key;
  tick.processes = {sample, unknown};
  tick.system = SystemSample{1, 2, 3, 4, 5, 0.5, 0.25, 6, 7, 0.75, 0.125, 8, 9, 10};
  tick.gpus = {{0, "A100 \xF0\x9F\x8C\x8A", 11, 12, {{101, 13}, {102, {}}}, 1, 87, 2.5, false},
               {mig_index(1, 3), "B", {}, {}, {}, {}, {}, 0.0, true}};
  tick.markers = {{1.25, {101, 5'000}, MarkerKind::kStep, 7, ""},
                  {1.3, {}, MarkerKind::kPhaseBegin, 0, "eval"}};
  tick.events = {{1.5, EventKind::kSpawn, {102, 5'001}, "rank 3", 4}};
  tick.losses = {{1.5, LossKind::kPssDenied, 2}};
  tick.allocations = full_allocations();
  return tick;
}

inline Tick empty_tick(double t_s) {
  Tick tick;
  tick.t_s = t_s;
  return tick;
}

// Tick number `n` of a plain run of one process that grows by 1 MB a second.
inline Tick plain_tick(std::uint64_t n) {
  Tick tick;
  tick.t_s = static_cast<double>(n);
  if (n == 0) {
    tick.new_processes = {trainer_record()};
  }
  ProcessSample sample;
  sample.key = trainer_record().key;
  sample.rss_bytes = 10'000'000 + n * 1'000'000;
  sample.rss_anon_bytes = 5'000'000 + n * 1'000'000;
  sample.rss_shmem_bytes = 0;
  sample.state = 'R';
  tick.processes = {sample};
  tick.tree = {1, *sample.rss_bytes, 0, *sample.rss_anon_bytes, false, {}, 0};
  tick.roles = {{Role::kTrainer, tick.tree}};
  return tick;
}

}  // namespace tidemark::tests
