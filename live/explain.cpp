// SPDX-License-Identifier: Apache-2.0
#include "live/explain.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/exit_code.h"
#include "common/messages.h"
#include "common/text.h"
#include "common/units.h"
#include "live/watch.h"
#include "live/watch_handler.h"
#include "monitor/session.h"
#include "profiler/collect/attached.h"
#include "profiler/heap/memory_ledger.h"
#include "profiler/reader/block_sites.h"
#include "recording/open.h"
#include "report/explain_text.h"
#include "report/output.h"
#include "tracker/ledgers/ledgers.h"

namespace tidemark::live {
namespace {

constexpr std::int64_t kUsualEveryNs = 20 * kNsPerSecond;

class ExplainWatch final : public WatchHandler {
 public:
  ExplainWatch(const ExplainOptions& options, ReadLedger read)
      : options_(options),
        read_(std::move(read)),
        looks_(options.looks.value_or(options.every_ns ? 2 : 1)),
        every_s_(to_seconds(options.every_ns.value_or(kUsualEveryNs))) {}

  WatchPolicy policy() const override { return {.command = "explain"}; }
  std::unique_ptr<WatchView> make_view(LineWriter& lines) override;
  void on_start(const RunInfo& /*info*/, WatchOutput& output) override { output_ = &output; }
  std::vector<RecordingSink*> sinks() override { return {&builder_}; }
  void add_to_tick(Tick& tick) override;
  void on_tick(const Tick& /*tick*/, const monitor::Session& session) override {
    is_over_ = session.sampler().finished();
  }
  bool has_refused() const override { return is_refused_; }
  bool is_done() const override { return begun_ >= looks_; }
  // Ctrl-C between two looks takes the last one now.
  bool finish_watching() override {
    is_last_ = begun_ > 0 && begun_ < looks_;
    return is_last_;
  }
  void on_end(const WatchEnding& ending, WatchOutput& output) override;
  int exit_code(const WatchEnding& ending) override;

  report::ExplainReport report() const;

 private:
  // A job that runs already is what it is; one that was started has to load first.
  bool is_due(const Tick& tick) const {
    if (begun_ >= looks_) {
      return false;
    }
    const bool is_at_once = begun_ == 0 && options_.watch.target.command.empty();
    return is_last_ || is_at_once || tick.t_s - last_s_ >= every_s_;
  }
  void look(Tick& tick);
  void announce();

  const ExplainOptions& options_;
  const ReadLedger read_;
  const std::uint64_t looks_;
  const double every_s_;
  tracker::LedgerBuilder builder_;
  WatchOutput* output_ = nullptr;
  std::uint64_t begun_ = 0;
  double last_s_ = 0.0;
  bool is_last_ = false;
  bool is_over_ = false;
  bool is_refused_ = false;
  std::vector<std::string> problems_;
  std::optional<std::pair<pid_t, Error>> failure_;  // the first
};

void ExplainWatch::look(Tick& tick) {
  const SystemClock clock;
  const std::int64_t begin_ns = clock.monotonic_ns();
  for (const ProcessSample& sample : tick.processes) {
    if (sample.state == 'Z' || sample.state == 'X') {
      continue;
    }
    auto ledger = read_(sample.key, tick.t_s + to_seconds(clock.monotonic_ns() - begin_ns));
    if (ledger) {
      tick.ledgers.push_back(*std::move(ledger));
    } else if (ledger.error().code != Errc::kGone) {  // one that has exited is none of ours
      problems_.push_back(fmt::format("pid {}: {}", sample.key.pid, ledger.error().what));
      if (!failure_) {
        failure_ = {sample.key.pid, ledger.error()};
      }
    }
  }
}

void ExplainWatch::announce() {
  if (begun_ < looks_ && !is_last_) {
    output_->note(fmt::format("look {} of {}; the next one in {}; Ctrl-C takes it now", begun_,
                              looks_, format_duration(every_s_)));
  }
}

void ExplainWatch::add_to_tick(Tick& tick) {
  if (!is_due(tick)) {
    return;
  }
  look(tick);
  if (tick.ledgers.empty() && failure_) {
    is_refused_ = true;
    return;
  }
  if (tick.ledgers.empty()) {
    return;  // nobody is there yet, or any more
  }
  ++begun_;
  last_s_ = tick.t_s;
  announce();
}

report::ExplainReport ExplainWatch::report() const {
  report::ExplainReport report = report::make_explain_report(builder_);
  report.with_all = options_.all;
  report.is_over = is_over_ || !options_.watch.target.command.empty();
  if (begun_ == 1 && looks_ > 1) {
    report.notes.emplace_back("there was one look only: what grows takes two");
  }
  report.notes.insert(report.notes.end(), problems_.begin(), problems_.end());
  return report;
}

void ExplainWatch::on_end(const WatchEnding& ending, WatchOutput& output) {
  output_ = nullptr;
  if (!builder_.ledgers().empty()) {
    return;
  }
  if (failure_) {
    const auto& [pid, error] = *failure_;
    output.error(fmt::format("cannot read the memory map of pid {}: {}", pid, error.what),
                 error.code == Errc::kPermission ? collect::attach_hint(error, pid) : "");
  } else if (ending.own_code == kExitOk) {
    output.error("it ended before its memory was looked at",
                 "--every 2s looks at it after two seconds");
  }
}

int ExplainWatch::exit_code(const WatchEnding& ending) {
  if (ending.command_status && ending.own_code != kExitUsage) {
    return *ending.command_status;
  }
  if (ending.own_code != kExitOk) {
    return ending.own_code;
  }
  return builder_.ledgers().empty() ? kExitTarget : kExitOk;
}

// The report at the end.
class ExplainView final : public WatchView {
 public:
  ExplainView(const ExplainWatch& watch, const ExplainOptions& options, LineWriter& writer)
      : watch_(watch), options_(options), writer_(writer) {}

  void on_end(const RunSummary& /*summary*/) override {
    const report::ExplainReport report = watch_.report();
    if (report.ledgers->empty()) {
      return;
    }
    if (options_.watch.json) {
      writer_.submit_always(report::explain_json(report) + '\n');
      return;
    }
    const int fd = options_.watch.target.command.empty() ? STDOUT_FILENO : STDERR_FILENO;
    writer_.submit_always(report::explain_text(report, report::style_for(fd, options_.plain)));
  }

 private:
  const ExplainWatch& watch_;
  const ExplainOptions& options_;
  LineWriter& writer_;
};

std::unique_ptr<WatchView> ExplainWatch::make_view(LineWriter& lines) {
  return std::make_unique<ExplainView>(*this, options_, lines);
}

int explain_recording(const ExplainOptions& options) {
  auto reader = recording::open_recording(options.input);
  if (!reader) {
    print_error(reader.error());
    return kExitTarget;
  }
  tracker::LedgerBuilder builder;
  const auto summary = (*reader)->read(builder);
  if (!summary) {
    print_error(summary.error());
  } else {
    report::print_read_notes(*summary);
  }
  if (builder.ledgers().empty()) {
    print_error(fmt::format("{} has no ledger of memory", escape_text(options.input)),
                "tidemark explain --pid PID -o FILE records one; tidemark track FILE judges it");
    return kExitTarget;
  }
  report::ExplainReport report = report::make_explain_report(builder);
  report.command = (*reader)->info().command;
  report.with_all = options.all;
  report.is_over = true;
  const std::string text =
      options.watch.json
          ? report::explain_json(report) + '\n'
          : report::explain_text(report, report::style_for(STDOUT_FILENO, options.plain));
  if (const Status printed = report::write_report_file("-", text); !printed) {
    print_error(printed.error());
    return kExitTarget;
  }
  return summary ? kExitOk : kExitTarget;
}

}  // namespace

ReadLedger read_ledger_by_heap() {
  heap::LedgerOptions options;
  options.traces = std::make_shared<reader::BlockSites>();
  return
      [options](const ProcessKey& key, double t_s) { return heap::read_ledger(key, t_s, options); };
}

int run_explain(const ExplainOptions& options, WatchSystem* system, ReadLedger read) {
  if (!options.input.empty()) {
    return explain_recording(options);
  }
  WatchOptions watched = options.watch;
  watched.pss = monitor::PssMode::kOff;  // a ledger reads the same; once is enough
  watched.warn = false;
  ExplainWatch handler(options, read ? std::move(read) : read_ledger_by_heap());
  return watch(watched, handler, system);
}

}  // namespace tidemark::live
