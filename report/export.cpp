// SPDX-License-Identifier: Apache-2.0
#include "report/export.h"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "common/exit_code.h"
#include "common/messages.h"
#include "common/process_table.h"
#include "common/redact.h"
#include "common/run_summary.h"
#include "common/text.h"
#include "recording/open.h"
#include "recording/run_writer.h"
#include "report/export_sites.h"
#include "report/output.h"
#include "report/tick_formats.h"

namespace tidemark::report {
namespace {

int export_failed(const Error& error, int exit_code = kExitTarget) {
  print_error(error);
  return exit_code;
}

// Turns a run into text, tick by tick.
class TextSink : public RecordingSink {
 public:
  explicit TextSink(ExportOutput output) : output_(std::move(output)) {}

  Status begin(const RunInfo& info) override {
    start(output_.buffer(), info);
    return ok();
  }
  Status add(const Tick& tick) override {
    has_ticks_ = true;
    processes_.update(tick);
    append(output_.buffer(), tick, [this](const ProcessKey& key) { return processes_.find(key); });
    return output_.write_if_full();
  }
  Status process_ended(const ProcessRecord& process) override {
    processes_.remove(process.key);
    return ok();
  }
  Status end(double) override {
    finish(output_.buffer());
    return output_.finish();
  }
  // After a recording that broke off: what came before it is worth keeping. False: there is none.
  bool keep_what_came() { return has_ticks_ && output_.finish().has_value(); }

 protected:
  virtual void start(std::string& out, const RunInfo& info) = 0;
  virtual void append(std::string& out, const Tick& tick, const ProcessLookup& lookup) = 0;
  virtual void finish(std::string& out) = 0;

 private:
  ExportOutput output_;
  ProcessTable processes_;
  bool has_ticks_ = false;
};

class CsvSink final : public TextSink {
 public:
  using TextSink::TextSink;

 protected:
  void start(std::string& out, const RunInfo& info) override {
    time_is_steps_ = info.time_is_steps;
    out += csv_header(time_is_steps_);
  }
  void append(std::string& out, const Tick& tick, const ProcessLookup& lookup) override {
    append_tick_csv(out, tick, lookup, time_is_steps_);
  }
  void finish(std::string&) override {}

 private:
  bool time_is_steps_ = false;
};

class JsonLinesSink final : public TextSink {
 public:
  using TextSink::TextSink;

 protected:
  void start(std::string& out, const RunInfo& info) override {
    time_is_steps_ = info.time_is_steps;
    out += run_json(info) + '\n';
  }
  void append(std::string& out, const Tick& tick, const ProcessLookup& lookup) override {
    for (const EventRecord& event : tick.events) {
      out += event_json(event, lookup, time_is_steps_) + '\n';
    }
    out += tick_json(tick, lookup, time_is_steps_) + '\n';
    summary_.add(tick);
  }
  void finish(std::string& out) override { out += summary_json(summary_, time_is_steps_) + '\n'; }

 private:
  RunSummary summary_;
  bool time_is_steps_ = false;
};

Result<std::unique_ptr<TextSink>> open_text_sink(const ExportOptions& options) {
  const bool is_stdout = options.output.empty() || options.output == "-";
  TIDEMARK_TRY_ASSIGN(auto output, is_stdout
                                       ? Result<ExportOutput>(ExportOutput::to_stdout())
                                       : ExportOutput::to_file(options.output, options.force));
  if (options.format == "csv") {
    return std::unique_ptr<TextSink>(std::make_unique<CsvSink>(std::move(output)));
  }
  return std::unique_ptr<TextSink>(std::make_unique<JsonLinesSink>(std::move(output)));
}

Status check_usage(const ExportOptions& options) {
  const bool is_of_sites = is_site_format(options.format);
  if (!is_of_sites && options.format != "csv" && options.format != "jsonl" &&
      options.format != "tidemark") {
    return Error{Errc::kUsage, fmt::format("'{}' is not a format; choose csv, jsonl, tidemark, "
                                           "folded, pprof or speedscope",
                                           escape_text(options.format))};
  }
  if (!is_of_sites && (options.from_s || options.to_s)) {
    return Error{Errc::kUsage,
                 "--from and --to are for the formats of call stacks: folded, pprof, "
                 "speedscope"};
  }
  if (options.from_s && options.to_s && *options.from_s >= *options.to_s) {
    return Error{Errc::kUsage, "--from has to be before --to"};
  }
  if (options.format == "tidemark" && (options.output.empty() || options.output == "-")) {
    return Error{Errc::kUsage, "a run file cannot go to the standard output; name it with -o"};
  }
  return ok();
}

int finish_export(const Result<recording::ReadSummary>& summary) {
  if (!summary) {
    return export_failed(summary.error());
  }
  print_read_notes(*summary);
  return kExitOk;
}

int export_text(recording::RecordingReader& reader, const ExportOptions& options) {
  auto sink = open_text_sink(options);
  if (!sink) {
    return export_failed(sink.error());
  }
  RedactingSink redacting(**sink);
  const auto summary = reader.read(redacting);
  if (!summary && (*sink)->keep_what_came()) {
    print_note("note: the export holds what came before the error");
  }
  return finish_export(summary);
}

int export_run_file(recording::RecordingReader& reader, const ExportOptions& options) {
  auto writer = recording::RunWriter::create(options.output, {.replace = options.force});
  if (!writer) {
    return export_failed(writer.error());
  }
  RedactingSink sink(**writer);
  const auto summary = reader.read(sink);
  if (summary && !(*writer)->is_one_file()) {
    print_note(
        fmt::format("note: {0} is in use by another program, so its log stays beside it: "
                    "move or copy {0} together with {0}-wal",
                    (*writer)->path()));
  }
  return finish_export(summary);
}

ProcessRecord redacted(ProcessRecord process) {
  process.argv = redact_text(process.argv);
  return process;
}

}  // namespace

Status RedactingSink::begin(const RunInfo& info) {
  RunInfo redacted_info = info;
  redacted_info.command = redact_text(info.command);
  return next_.begin(redacted_info);
}

Status RedactingSink::add(const Tick& tick) {
  if (tick.new_processes.empty()) {
    return next_.add(tick);
  }
  Tick redacted_tick = tick;
  for (ProcessRecord& process : redacted_tick.new_processes) {
    process = redacted(std::move(process));
  }
  return next_.add(redacted_tick);
}

Status RedactingSink::process_ended(const ProcessRecord& process) {
  return next_.process_ended(redacted(process));
}

int run_export(const ExportOptions& options) {
  if (const Status usage = check_usage(options); !usage) {
    return export_failed(usage.error(), kExitUsage);
  }
  auto reader = recording::open_recording(options.input);
  if (!reader) {
    return export_failed(reader.error());
  }
  if (is_site_format(options.format)) {
    return export_sites(**reader, options);
  }
  return options.format == "tidemark" ? export_run_file(**reader, options)
                                      : export_text(**reader, options);
}

}  // namespace tidemark::report
