// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/records.h"
#include "common/result.h"
#include "recording/sqlite.h"

namespace tidemark::recording {

// The number of a process in the file.
using ProcessNumber = std::function<Result<std::int64_t>(const ProcessKey&)>;

// Puts what the allocation tracer adds to a tick into the tables of schema.h. The caller holds the
// transaction. Keeps no history.
class SiteWriter {
 public:
  static Result<SiteWriter> prepare(Database& database);

  Status write(const AllocationFacts& facts, std::int64_t tick, const ProcessNumber& number_of);

 private:
  struct Statements {
    Statement module;
    Statement frame;
    Statement site;
    Statement site_frame;
    Statement sample;
    Statement forget_ages;
    Statement age;
    Statement trace;
    Statement account;
    Statement shm_growth;
    Statement shm_segment;
  };
  explicit SiteWriter(Statements statements) : statements_(std::move(statements)) {}

  Status write_site(const SiteRecord& site, std::int64_t tick, const ProcessNumber& number_of);
  Status write_ages(const SiteAges& ages, std::int64_t tick);
  Status write_shm(const ShmGrowthReport& shm, std::int64_t tick);

  Statements statements_;
};

class HeapWriter;
class LedgerWriter;

// Puts ticks into the tables of schema.h. The caller holds the transaction. Keeps no history: its
// memory depends on the number of processes that are alive or traced.
class TickWriter {
 public:
  static Result<TickWriter> prepare(Database& database);
  ~TickWriter();
  TickWriter(TickWriter&&) noexcept;
  TickWriter& operator=(TickWriter&&) noexcept;

  Status write(const Tick& tick);
  // How long after it was handed over the last tick was in the file. Known only after its
  // transaction, and so written by the next one.
  Status write_lateness(double seconds);
  Status write_end(const ProcessRecord& process);

  std::uint64_t ticks() const { return static_cast<std::uint64_t>(tick_); }

 private:
  struct Statements {
    Statement tick;
    Statement lateness;
    Statement process;
    Statement process_end;
    Statement process_sample;
    Statement group_sample;
    Statement system_sample;
    Statement gpu;
    Statement gpu_sample;
    Statement gpu_process_sample;
    Statement gpu_state;
    Statement marker;
    Statement event;
    Statement loss;
    Statement untraced;
    Statement intervention;
  };
  TickWriter(Statements statements, SiteWriter sites, std::unique_ptr<HeapWriter> heap,
             std::unique_ptr<LedgerWriter> ledgers);

  template <typename Record>
  Status append(Statement& statement, const std::vector<Record>& records);
  Status write_process(const ProcessRecord& process);
  Status write_sample(const ProcessSample& sample);
  Status write_group(std::string_view who, const GroupSample& sum);
  Status write_gpu(const GpuSample& gpu);
  Result<std::int64_t> number_of(const ProcessKey& key);
  Result<std::int64_t> traced_number_of(const ProcessKey& key);

  Statements statements_;
  SiteWriter sites_;
  std::unique_ptr<HeapWriter> heap_;
  std::unique_ptr<LedgerWriter> ledgers_;
  std::int64_t tick_ = 0;  // number of the last tick; the first is 1
  std::int64_t last_process_ = 0;
  std::unordered_map<ProcessKey, std::int64_t> process_numbers_;
  std::unordered_map<ProcessKey, std::int64_t> traced_numbers_;  // until the last of the tracer
  std::map<std::uint32_t, std::string> gpu_names_;
  double t_s_ = 0.0;
};

}  // namespace tidemark::recording
