// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/process_table.h"
#include "common/records.h"
#include "common/units.h"

namespace tidemark::tests {

inline constexpr ProcessKey kTrainer{1240, 500};
inline constexpr ProcessKey kWorker{1241, 510};

inline ProcessSample process_sample(const ProcessKey& key, std::uint64_t anon_mib) {
  ProcessSample sample;
  sample.key = key;
  sample.rss_bytes = (anon_mib + 50) * kMiB;
  sample.rss_anon_bytes = anon_mib * kMiB;
  sample.rss_file_bytes = 50 * kMiB;
  sample.rss_shmem_bytes = 0;
  sample.state = 'S';
  return sample;
}

// A trainer of 300 MiB and a compile worker of 20.
inline Tick sample_tick(double t_s, std::uint64_t trainer_mib = 300) {
  Tick tick;
  tick.t_s = t_s;
  tick.processes = {process_sample(kTrainer, trainer_mib), process_sample(kWorker, 20)};
  tick.tree = {2, (trainer_mib + 120) * kMiB, 0, (trainer_mib + 20) * kMiB, false, {}, 0};
  tick.roles = {
      {Role::kTrainer, {1, (trainer_mib + 50) * kMiB, 0, trainer_mib * kMiB, false, {}, 0}},
      {Role::kCompileWorker, {1, 70 * kMiB, 0, 20 * kMiB, false, {}, 0}}};
  return tick;
}

inline const ProcessRecord* sample_record(const ProcessKey& key) {
  static const ProcessRecord kTrainerRecord{
      kTrainer, 1, Role::kTrainer, {}, "python3", "python3 train.py", 0.0, {}, {}, {}};
  static const ProcessRecord kWorkerRecord{
      kWorker, 1240, Role::kCompileWorker, {}, "evil\x1b[2J", "evil\x1b[2J\xff --x", 0.0, {},
      {},      {}};
  return key == kTrainer ? &kTrainerRecord : (key == kWorker ? &kWorkerRecord : nullptr);
}

}  // namespace tidemark::tests
