// SPDX-License-Identifier: Apache-2.0
#include "recording/site_cursor.h"

#include <utility>

#include <fmt/format.h>

#include "recording/columns.h"

namespace tidemark::recording {

Result<SiteCursor> SiteCursor::open(Database& database, std::int32_t version) {
  CursorOpener open(database);
  auto modules = open("modules", "tick, module");
  auto frames = open("frames", "tick, frame");
  auto sites = open("sites", "tick, site");
  auto samples = open("site_samples", "tick, site");
  auto births = open("site_births", "tick, site, place");
  auto traces = open("trace_samples", "tick, process");
  std::optional<TableCursor> accounts;
  std::optional<TableCursor> shm_growth;
  std::optional<TableCursor> shm_segments;
  if (version >= kAccountsSinceVersion) {
    accounts = open("trace_accounts", "tick, process");
    shm_growth = open("shm_growth", "tick");
    shm_segments = open("shm_segments", "tick, place");
  }
  if (open.error()) {
    return *open.error();
  }
  auto stack = database.prepare(fmt::format(
      "SELECT frame FROM site_frames WHERE site = ?1 ORDER BY depth LIMIT {}", kMostFrames));
  if (!stack) {
    return stack.error();
  }
  return SiteCursor(
      Tables{std::move(*modules), std::move(*frames), std::move(*sites), std::move(*samples),
             std::move(*births), std::move(*traces), std::move(accounts), std::move(shm_growth),
             std::move(shm_segments), std::move(*stack)},
      database.path());
}

Status SiteCursor::take(std::int64_t tick, AllocationFacts& facts,
                        const ProcessOfNumber& process_of) {
  Status status = take_numbered(tables_.modules, tick, &ModuleRecord::module, facts.modules);
  if (status) {
    status = take_numbered(tables_.frames, tick, &FrameRecord::frame, facts.frames);
  }
  if (status) {
    status = take_sites(tick, facts.sites, process_of);
  }
  if (status) {
    status = tables_.samples.take_rows(tick, [&](const Statement& row) -> Status {
      const auto site = number(row, 2);
      if (!site) {
        return site.error();
      }
      SiteSample& sample = facts.samples.emplace_back();
      sample.site = *site;
      return load(row, 3, sample);
    });
  }
  if (status) {
    status = take_births(tick, facts.births);
  }
  if (status) {
    status = take_traces(tick, facts.traces, process_of);
  }
  if (status) {
    status = take_accounts(tick, facts.accounts, process_of);
  }
  return status ? take_shm(tick, facts.shm) : status;
}

// A kind that a later version has added reads as the first one.
template <typename Record>
Status SiteCursor::load(const Statement& row, int first_column, Record& record) const {
  RowLoader loader(row, first_column);
  visit_columns(loader, record);
  if (loader.is_valid()) {
    return ok();
  }
  return Error{Errc::kMalformed,
               fmt::format("{} is damaged: a column holds a value of the wrong type", path_)};
}

Result<std::uint32_t> SiteCursor::number(const Statement& row, int column) const {
  const std::int64_t value = row.integer(column);
  if (!row.is_integer(column) || !std::in_range<std::uint32_t>(value)) {
    return Error{Errc::kMalformed, fmt::format("{} is damaged: a number is out of range", path_)};
  }
  return static_cast<std::uint32_t>(value);
}

template <typename Record>
Status SiteCursor::take_numbered(TableCursor& table, std::int64_t tick,
                                 std::uint32_t Record::*number_of, std::vector<Record>& records) {
  return table.take_rows(tick, [&](const Statement& row) -> Status {
    const auto value = number(row, 1);
    if (!value) {
      return value.error();
    }
    Record& record = records.emplace_back();
    record.*number_of = *value;
    return load(row, 3, record);
  });
}

Status SiteCursor::take_sites(std::int64_t tick, std::vector<SiteRecord>& sites,
                              const ProcessOfNumber& process_of) {
  return tables_.sites.take_rows(tick, [&](const Statement& row) -> Status {
    const auto value = number(row, 1);
    if (!value) {
      return value.error();
    }
    const ProcessKey* key = process_of(row.integer(3));
    if (key == nullptr) {
      return ok();
    }
    SiteRecord& site = sites.emplace_back();
    site.site = *value;
    site.key = *key;
    if (Status status = load(row, 4, site); !status) {
      return status;
    }
    return load_stack(site);
  });
}

Status SiteCursor::load_stack(SiteRecord& site) {
  tables_.stack.bind(1, std::int64_t{site.site});
  while (true) {
    const auto row = tables_.stack.step();
    if (!row) {
      return row.error();
    }
    if (!*row) {
      return ok();
    }
    const auto frame = number(tables_.stack, 0);
    if (!frame) {
      tables_.stack.reset();
      return frame.error();
    }
    site.frames.push_back(*frame);
  }
}

Status SiteCursor::take_births(std::int64_t tick, std::vector<SiteBirths>& births) {
  return tables_.births.take_rows(tick, [&](const Statement& row) -> Status {
    const auto site = number(row, 1);
    if (!site) {
      return site.error();
    }
    if (births.empty() || births.back().site != *site) {
      births.push_back({*site, {}});
    }
    return load(row, 4, births.back().births.emplace_back());
  });
}

Status SiteCursor::take_traces(std::int64_t tick, std::vector<TraceSample>& traces,
                               const ProcessOfNumber& process_of) {
  return tables_.traces.take_rows(tick, [&](const Statement& row) -> Status {
    const ProcessKey* key = process_of(row.integer(2));
    if (key == nullptr) {
      return ok();
    }
    TraceSample& trace = traces.emplace_back();
    trace.key = *key;
    return load(row, 3, trace);
  });
}

Status SiteCursor::take_accounts(std::int64_t tick, std::vector<MemoryAccount>& accounts,
                                 const ProcessOfNumber& process_of) {
  if (!tables_.accounts) {
    return ok();
  }
  return tables_.accounts->take_rows(tick, [&](const Statement& row) -> Status {
    const ProcessKey* key = process_of(row.integer(2));
    if (key == nullptr) {
      return ok();
    }
    MemoryAccount& account = accounts.emplace_back();
    account.key = *key;
    return load(row, 3, account);
  });
}

Status SiteCursor::take_shm(std::int64_t tick, std::optional<ShmGrowthReport>& shm) {
  if (!tables_.shm_growth || !tables_.shm_segments) {
    return ok();
  }
  Status sum = tables_.shm_growth->take_rows(
      tick, [&](const Statement& row) { return load(row, 2, shm.emplace()); });
  if (!sum) {
    return sum;
  }
  return tables_.shm_segments->take_rows(tick, [&](const Statement& row) {
    return shm ? load(row, 3, shm->largest.emplace_back()) : ok();
  });
}

}  // namespace tidemark::recording
