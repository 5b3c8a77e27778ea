// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "common/process_key.h"
#include "common/result.h"
#include "common/site_records.h"
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
    Statement forget_births;
    Statement birth;
    Statement trace;
    Statement account;
    Statement shm_growth;
    Statement shm_segment;
  };
  explicit SiteWriter(Statements statements) : statements_(std::move(statements)) {}

  Status write_site(const SiteRecord& site, std::int64_t tick, const ProcessNumber& number_of);
  Status write_births(const SiteBirths& births, std::int64_t tick);
  Status write_shm(const ShmGrowthReport& shm, std::int64_t tick);

  Statements statements_;
};

}  // namespace tidemark::recording
