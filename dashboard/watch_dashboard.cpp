// SPDX-License-Identifier: Apache-2.0
#include "dashboard/dashboard.h"

#include <utility>
#include <vector>

#include "common/text.h"
#include "dashboard/job_status.h"
#include "dashboard/terminal.h"
#include "report/monitor_lines.h"

namespace tidemark::dashboard {
namespace {

JobRow row_of(const ServedJob& job) {
  JobRow row;
  row.name = escape_text(job.id + " " + job.arguments);
  row.state = escape_text(job.state);
  row.step = job.step;
  row.peak_bytes = job.peak_bytes;
  if (job.before_bytes && job.after_bytes) {
    row.kept_bytes =
        static_cast<std::int64_t>(*job.after_bytes) - static_cast<std::int64_t>(*job.before_bytes);
  }
  return row;
}

class DashboardView final : public live::WatchView {
 public:
  DashboardView(live::LineWriter& writer, std::unique_ptr<Dashboard> dashboard,
                const DashboardOptions& options)
      : writer_(writer),
        dashboard_(std::move(dashboard)),
        is_live_(!options.replay_speed),
        take_end_of_profile_(options.take_end_of_profile) {}

  void on_start(const RunInfo& info) override {
    time_format_ = TimeFormat::of(info);
    dashboard_->begin(info);
  }
  void on_limit(std::optional<std::uint64_t> bytes, const std::string& source) override {
    dashboard_->set_limit(bytes, source);
  }
  void on_tick(const Tick& tick, const ProcessKey& trainer,
               const ProcessLookup& /*lookup*/) override {
    if (take_end_of_profile_ && take_end_of_profile_()) {
      dashboard_->forget_sites();
    }
    dashboard_->add(tick, trainer);
    if (is_live_) {
      show_jobs(tick);
    }
  }
  // The screen is gone then: the messages that were on it, the summary and the verdict stay in the
  // scroll-back.
  void on_end(const RunSummary& summary) override {
    const std::string verdict = dashboard_->verdict_text();
    dashboard_.reset();
    writer_.submit_always(std::exchange(messages_, {}) +
                          report::summary_text(summary, time_format_) +
                          (verdict.empty() ? "" : '\n' + verdict));
  }

  int input_fd() const override { return dashboard_->news_fd(); }
  bool on_input() override {
    dashboard_->take_news();
    return !dashboard_->is_closed();
  }
  std::vector<std::string> take_marks() override { return dashboard_->take_marks(); }
  bool show_message(const std::string& text) override {
    if (dashboard_ == nullptr) {
      return false;
    }
    messages_ += text;
    dashboard_->show_message(text);
    return true;
  }
  bool stays_open() override {
    dashboard_->set_ended();
    return true;
  }
  bool is_paused() const override { return dashboard_->is_paused(); }

 private:
  void show_jobs(const Tick& tick) {
    for (const ProcessRecord& process : tick.new_processes) {
      jobs_.add_process(process);
    }
    if (const auto jobs = jobs_.poll()) {
      std::vector<JobRow> rows;
      for (const ServedJob& job : *jobs) {
        rows.push_back(row_of(job));
      }
      dashboard_->set_jobs(std::move(rows));
    }
  }

  live::LineWriter& writer_;
  std::unique_ptr<Dashboard> dashboard_;
  const bool is_live_;
  const std::function<bool()> take_end_of_profile_;
  TimeFormat time_format_;
  JobWatch jobs_;
  std::string messages_;
};

}  // namespace

bool dashboard_is_possible() { return terminal_is_usable(); }

std::unique_ptr<live::WatchView> make_dashboard_view(live::LineWriter& lines,
                                                     const DashboardOptions& options) {
  auto dashboard = Dashboard::open(options);
  return dashboard ? std::make_unique<DashboardView>(lines, *std::move(dashboard), options)
                   : nullptr;
}

}  // namespace tidemark::dashboard
