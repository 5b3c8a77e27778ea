// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "common/owner_records.h"
#include "common/result.h"
#include "recording/sqlite.h"
#include "recording/tick_cursor.h"
#include "recording/tick_writer.h"

// What looks at the heap add to a run file: who writes it, and who reads it.
namespace tidemark::recording {

// Puts what looks add to a tick into the tables of schema.h. The caller holds the transaction.
// Keeps no history.
class HeapWriter {
 public:
  static Result<HeapWriter> prepare(Database& database);

  Status write(const HeapFacts& facts, std::int64_t tick, const ProcessNumber& number_of);

 private:
  struct Statements {
    Statement look;
    Statement interpreter;
    Statement owner;
    Statement step;
    Statement sample;
    Statement held;
    Statement site;
    Statement type;
    Statement tensor;
  };
  explicit HeapWriter(Statements statements) : statements_(std::move(statements)) {}

  Status write_owner(const OwnerRecord& owner, std::int64_t tick, const ProcessNumber& number_of);
  Status write_sample(const OwnerSample& sample, std::int64_t tick, std::int64_t process);

  Statements statements_;
};

// What looks added to each tick of a run file. What belongs to no process, look or owner of the
// file is skipped. The database must outlive it and stay in one read transaction.
class HeapCursor {
 public:
  // What is read of one owner, or of one of its samples: a file can be made up.
  static constexpr std::size_t kMostParts = 256;

  // `version` is that of the file's schema.
  static Result<HeapCursor> open(Database& database, std::int32_t version);

  // Adds what belongs to `tick`; ticks come in their order.
  Status take(std::int64_t tick, HeapFacts& facts, const ProcessOfNumber& process_of);

 private:
  struct Tables {
    TableCursor looks;
    TableCursor interpreters;
    TableCursor owners;
    TableCursor samples;
    TableCursor holds;
    TableCursor sites;
    TableCursor types;
    TableCursor tensors;
  };
  HeapCursor(Tables tables, std::optional<Statement> steps, std::string path)
      : tables_(std::move(tables)), steps_(std::move(steps)), path_(std::move(path)) {}

  Status take_owners(std::int64_t tick, HeapFacts& facts, const ProcessOfNumber& process_of);
  Status load_steps(std::int64_t process, OwnerRecord& owner);
  Status take_samples(std::int64_t tick, HeapFacts& facts, const ProcessOfNumber& process_of);

  Tables tables_;
  std::optional<Statement> steps_;  // nullopt: the file does not have them
  std::string path_;
};

}  // namespace tidemark::recording
