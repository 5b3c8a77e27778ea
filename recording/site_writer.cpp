// SPDX-License-Identifier: Apache-2.0
#include "recording/site_writer.h"

#include "recording/statements.h"

namespace tidemark::recording {

Result<SiteWriter> SiteWriter::prepare(Database& database) {
  Preparer prepare(database);
  // "OR REPLACE": should a tick ever name something twice, the last word counts.
  auto module = prepare("INSERT OR REPLACE INTO modules VALUES(?,?,?,?)");
  auto frame = prepare("INSERT OR REPLACE INTO frames VALUES(?,?,?,?,?,?,?,?,?)");
  // A site that is named later keeps its place in time.
  auto site = prepare("INSERT OR IGNORE INTO sites VALUES(?,?,?,?,?)");
  auto site_frame = prepare("INSERT OR REPLACE INTO site_frames VALUES(?,?,?)");
  auto sample = prepare("INSERT OR REPLACE INTO site_samples VALUES(?,?,?,?,?,?,?,?,?)");
  auto forget_births = prepare("DELETE FROM site_births WHERE site = ?1");
  auto birth = prepare("INSERT OR REPLACE INTO site_births VALUES(?,?,?,?,?,?)");
  auto trace =
      prepare("INSERT OR REPLACE INTO trace_samples VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
  auto account = prepare("INSERT OR REPLACE INTO trace_accounts VALUES(?,?,?,?,?,?,?)");
  auto shm_growth = prepare("INSERT OR REPLACE INTO shm_growth VALUES(?,?,?)");
  auto shm_segment = prepare("INSERT OR REPLACE INTO shm_segments VALUES(?,?,?,?,?,?,?)");
  if (prepare.error()) {
    return *prepare.error();
  }
  return SiteWriter(Statements{
      std::move(*module), std::move(*frame), std::move(*site), std::move(*site_frame),
      std::move(*sample), std::move(*forget_births), std::move(*birth), std::move(*trace),
      std::move(*account), std::move(*shm_growth), std::move(*shm_segment)});
}

Status SiteWriter::write(const AllocationFacts& facts, std::int64_t tick,
                         const ProcessNumber& number_of) {
  Status status = for_each(facts.modules, [&](const ModuleRecord& module) {
    return insert(statements_.module, module, module.module, tick);
  });
  // Each step runs only when all before it succeeded.
  const auto then = [&status](const auto& records, auto&& write) {
    if (status) {
      status = for_each(records, write);
    }
  };
  then(facts.frames, [&](const FrameRecord& frame) {
    return insert(statements_.frame, frame, frame.frame, tick);
  });
  then(facts.sites, [&](const SiteRecord& site) { return write_site(site, tick, number_of); });
  then(facts.samples, [&](const SiteSample& sample) {
    return insert(statements_.sample, sample, tick, sample.site);
  });
  then(facts.births, [&](const SiteBirths& births) { return write_births(births, tick); });
  then(facts.traces, [&](const TraceSample& trace) {
    const auto process = number_of(trace.key);
    return process ? insert(statements_.trace, trace, tick, *process) : Status(process.error());
  });
  then(facts.accounts, [&](const MemoryAccount& account) {
    const auto process = number_of(account.key);
    return process ? insert(statements_.account, account, tick, *process) : Status(process.error());
  });
  return status && facts.shm ? write_shm(*facts.shm, tick) : status;
}

Status SiteWriter::write_site(const SiteRecord& site, std::int64_t tick,
                              const ProcessNumber& number_of) {
  const auto process = number_of(site.key);
  if (!process) {
    return process.error();
  }
  Status status = insert(statements_.site, site, site.site, tick, *process);
  std::int64_t depth = 0;
  for (const std::uint32_t frame : site.frames) {
    if (!status) {
      break;
    }
    RowBinder bind(statements_.site_frame);
    bind(site.site), bind(depth++), bind(frame);
    status = statements_.site_frame.run();
  }
  return status;
}

Status SiteWriter::write_births(const SiteBirths& births, std::int64_t tick) {
  statements_.forget_births.bind(1, std::int64_t{births.site});
  Status status = statements_.forget_births.run();
  std::int64_t place = 0;
  for (const SiteBirths::Birth& birth : births.births) {
    if (!status) {
      break;
    }
    status = insert(statements_.birth, birth, births.site, place++, tick);
  }
  return status;
}

Status SiteWriter::write_shm(const ShmGrowthReport& shm, std::int64_t tick) {
  Status status = insert(statements_.shm_growth, shm, tick);
  std::int64_t place = 0;
  for (const GrowingSegment& segment : shm.largest) {
    if (!status) {
      break;
    }
    status = insert(statements_.shm_segment, segment, tick, place++);
  }
  return status;
}

}  // namespace tidemark::recording
