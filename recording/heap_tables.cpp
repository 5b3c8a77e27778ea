// SPDX-License-Identifier: Apache-2.0
#include "recording/heap_tables.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "recording/rows.h"
#include "recording/schema.h"

namespace tidemark::recording {

Result<HeapWriter> HeapWriter::prepare(Database& database) {
  const auto prepare = [&](std::string_view table, std::string_view verb = "INSERT OR REPLACE") {
    return database.prepare(insert_sql(table, verb));
  };
  TIDEMARK_TRY_ASSIGN(auto look, prepare("heap_looks"));
  TIDEMARK_TRY_ASSIGN(auto interpreter, prepare("interpreters"));
  // An owner that is introduced again keeps the tick in which it was first seen.
  TIDEMARK_TRY_ASSIGN(auto owner, prepare("owners", "INSERT OR IGNORE"));
  TIDEMARK_TRY_ASSIGN(auto step, prepare("owner_steps"));
  TIDEMARK_TRY_ASSIGN(auto sample, prepare("owner_samples"));
  TIDEMARK_TRY_ASSIGN(auto held, prepare("owner_holds"));
  TIDEMARK_TRY_ASSIGN(auto site, prepare("owner_sites"));
  TIDEMARK_TRY_ASSIGN(auto type, prepare("heap_types"));
  TIDEMARK_TRY_ASSIGN(auto tensor, prepare("heap_tensors"));
  return HeapWriter(Statements{std::move(look), std::move(interpreter), std::move(owner),
                               std::move(step), std::move(sample), std::move(held), std::move(site),
                               std::move(type), std::move(tensor)});
}

Status HeapWriter::write(const HeapFacts& facts, std::int64_t tick,
                         const ProcessNumber& number_of) {
  for (const OwnerRecord& owner : facts.owners) {
    TIDEMARK_TRY(write_owner(owner, tick, number_of));
  }
  for (const HeapFacts::OfProcess& of : facts.looks) {
    TIDEMARK_TRY_ASSIGN(const std::int64_t process, number_of(of.look.key));
    TIDEMARK_TRY(insert(statements_.look, of.look, tick, process));
    TIDEMARK_TRY(insert(statements_.interpreter, of.look.interpreter, tick, process));
    for (const OwnerSample& sample : of.owners) {
      TIDEMARK_TRY(write_sample(sample, tick, process));
    }
    std::int64_t place = 0;
    for (const TypeSample& type : of.types) {
      TIDEMARK_TRY(insert(statements_.type, type, tick, process, place++));
    }
    place = 0;
    for (const TensorSample& tensor : of.tensors) {
      TIDEMARK_TRY(insert(statements_.tensor, tensor, tick, process, place++));
    }
  }
  return ok();
}

Status HeapWriter::write_owner(const OwnerRecord& owner, std::int64_t tick,
                               const ProcessNumber& number_of) {
  TIDEMARK_TRY_ASSIGN(const std::int64_t process, number_of(owner.key));
  TIDEMARK_TRY(insert(statements_.owner, owner, process, owner.owner, tick));
  std::int64_t place = 0;
  for (const PathStep& step : owner.steps) {
    TIDEMARK_TRY(insert(statements_.step, step, process, owner.owner, place++));
  }
  return ok();
}

Status HeapWriter::write_sample(const OwnerSample& sample, std::int64_t tick,
                                std::int64_t process) {
  TIDEMARK_TRY(insert(statements_.sample, sample, tick, process, sample.owner));
  std::int64_t place = 0;
  for (const HeldObjects& held : sample.holds) {
    TIDEMARK_TRY(insert(statements_.held, held, tick, process, sample.owner, place++));
  }
  place = 0;
  for (const OwnerSite& site : sample.sites) {
    TIDEMARK_TRY(insert(statements_.site, site, tick, process, sample.owner, place++));
  }
  return ok();
}

Result<HeapCursor> HeapCursor::open(Database& database, std::int32_t version) {
  const auto open = [&](std::string_view table, std::string_view rest) {
    return TableCursor::open(database, version, table, rest);
  };
  TIDEMARK_TRY_ASSIGN(auto looks, open("heap_looks", "ORDER BY tick, process"));
  TIDEMARK_TRY_ASSIGN(auto interpreters, open("interpreters", "ORDER BY tick, process"));
  TIDEMARK_TRY_ASSIGN(auto owners, open("owners", "ORDER BY tick, process, owner"));
  TIDEMARK_TRY_ASSIGN(auto samples, open("owner_samples", "ORDER BY tick, process, owner"));
  TIDEMARK_TRY_ASSIGN(auto holds, open("owner_holds", "ORDER BY tick, process, owner, place"));
  TIDEMARK_TRY_ASSIGN(auto sites, open("owner_sites", "ORDER BY tick, process, owner, place"));
  TIDEMARK_TRY_ASSIGN(auto types, open("heap_types", "ORDER BY tick, process, place"));
  TIDEMARK_TRY_ASSIGN(auto tensors, open("heap_tensors", "ORDER BY tick, process, place"));
  std::optional<Statement> steps;
  if (table_named("owner_steps").since_version <= version) {
    TIDEMARK_TRY_ASSIGN(
        steps,
        database.prepare(select_sql(
            "owner_steps", "place",
            fmt::format("WHERE process = ?1 AND owner = ?2 ORDER BY place LIMIT {}", kMostParts),
            version)));
  }
  return HeapCursor(
      Tables{std::move(looks), std::move(interpreters), std::move(owners), std::move(samples),
             std::move(holds), std::move(sites), std::move(types), std::move(tensors)},
      std::move(steps), database.path());
}

namespace {

HeapFacts::OfProcess* look_at(HeapFacts& facts, const ProcessKey* key) {
  const auto look = std::find_if(
      facts.looks.begin(), facts.looks.end(),
      [&](const HeapFacts::OfProcess& of) { return key != nullptr && of.look.key == *key; });
  return look == facts.looks.end() ? nullptr : &*look;
}

// Rows come in the order of owners: it is the last sample, or none.
OwnerSample* last_sample(HeapFacts::OfProcess* of, std::uint32_t owner) {
  if (of == nullptr) {
    return nullptr;
  }
  const auto sample = std::lower_bound(
      of->owners.begin(), of->owners.end(), owner,
      [](const OwnerSample& each, std::uint32_t number) { return each.owner < number; });
  return sample == of->owners.end() || sample->owner != owner ? nullptr : &*sample;
}

// Rows of a table whose columns are the tick, a process, and the place and fields of a part of its
// look.
template <typename Record>
Status take_parts(TableCursor& table, std::int64_t tick, HeapFacts& facts,
                  const ProcessOfNumber& process_of,
                  std::vector<Record> HeapFacts::OfProcess::*parts) {
  constexpr std::size_t kMost = 10'000;
  return table.take_rows(tick, [&] {
    HeapFacts::OfProcess* const of = look_at(facts, process_of(table.row().integer(2)));
    if (of == nullptr || (of->*parts).size() >= kMost) {
      return ok();
    }
    return table.load<Record>(4, (of->*parts).emplace_back());
  });
}

// The same of a sample of an owner.
template <typename Record>
Status take_sample_parts(TableCursor& table, std::int64_t tick, HeapFacts& facts,
                         const ProcessOfNumber& process_of,
                         std::vector<Record> OwnerSample::*parts) {
  return table.take_rows(tick, [&]() -> Status {
    TIDEMARK_TRY_ASSIGN(const std::uint32_t owner, table.number(3));
    OwnerSample* const sample =
        last_sample(look_at(facts, process_of(table.row().integer(2))), owner);
    if (sample == nullptr || (sample->*parts).size() >= HeapCursor::kMostParts) {
      return ok();
    }
    return table.load<Record>(5, (sample->*parts).emplace_back());
  });
}

}  // namespace

// A kind that a later version has added reads as the first one.
Status HeapCursor::take(std::int64_t tick, HeapFacts& facts, const ProcessOfNumber& process_of) {
  TIDEMARK_TRY(take_owners(tick, facts, process_of));
  TableCursor& looks = tables_.looks;
  TIDEMARK_TRY(looks.take_rows(tick, [&] {
    const ProcessKey* const key = process_of(looks.row().integer(2));
    if (key == nullptr || look_at(facts, key) != nullptr) {
      return ok();
    }
    HeapLook& look = facts.looks.emplace_back().look;
    look.key = *key;
    return looks.load<HeapLook>(3, look);
  }));
  TableCursor& interpreters = tables_.interpreters;
  TIDEMARK_TRY(interpreters.take_rows(tick, [&] {
    HeapFacts::OfProcess* const of = look_at(facts, process_of(interpreters.row().integer(2)));
    return of == nullptr ? ok() : interpreters.load<InterpreterFacts>(3, of->look.interpreter);
  }));
  TIDEMARK_TRY(take_samples(tick, facts, process_of));
  TIDEMARK_TRY(take_parts(tables_.types, tick, facts, process_of, &HeapFacts::OfProcess::types));
  return take_parts(tables_.tensors, tick, facts, process_of, &HeapFacts::OfProcess::tensors);
}

Status HeapCursor::take_owners(std::int64_t tick, HeapFacts& facts,
                               const ProcessOfNumber& process_of) {
  TableCursor& table = tables_.owners;
  return table.take_rows(tick, [&]() -> Status {
    TIDEMARK_TRY_ASSIGN(const std::uint32_t number, table.number(2));
    const std::int64_t process = table.row().integer(1);
    const ProcessKey* const key = process_of(process);
    if (key == nullptr) {
      return ok();
    }
    OwnerRecord& owner = facts.owners.emplace_back();
    owner.owner = number;
    owner.key = *key;
    TIDEMARK_TRY(table.load<OwnerRecord>(4, owner));
    return load_steps(process, owner);
  });
}

Status HeapCursor::load_steps(std::int64_t process, OwnerRecord& owner) {
  steps_->bind(1, process);
  steps_->bind(2, std::int64_t{owner.owner});
  while (true) {
    TIDEMARK_TRY_ASSIGN(const bool has_row, steps_->step());
    if (!has_row) {
      return ok();
    }
    RowLoader loader(*steps_, 4, kSchemaVersion);
    loader.load<PathStep>(owner.steps.emplace_back());
    if (!loader.is_valid()) {
      steps_->reset();
      return damaged_file(path_, "a step of a path is none");
    }
  }
}

Status HeapCursor::take_samples(std::int64_t tick, HeapFacts& facts,
                                const ProcessOfNumber& process_of) {
  TableCursor& table = tables_.samples;
  TIDEMARK_TRY(table.take_rows(tick, [&]() -> Status {
    TIDEMARK_TRY_ASSIGN(const std::uint32_t owner, table.number(3));
    HeapFacts::OfProcess* const of = look_at(facts, process_of(table.row().integer(2)));
    if (of == nullptr || (!of->owners.empty() && of->owners.back().owner >= owner)) {
      return ok();
    }
    OwnerSample& sample = of->owners.emplace_back();
    sample.owner = owner;
    return table.load<OwnerSample>(4, sample);
  }));
  TIDEMARK_TRY(take_sample_parts(tables_.holds, tick, facts, process_of, &OwnerSample::holds));
  return take_sample_parts(tables_.sites, tick, facts, process_of, &OwnerSample::sites);
}

}  // namespace tidemark::recording
