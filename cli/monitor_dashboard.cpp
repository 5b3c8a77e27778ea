// SPDX-License-Identifier: Apache-2.0
#include "cli/monitor_dashboard.h"

#include <utility>

#include "cli/monitor_lines.h"
#include "monitor/tui/dashboard.h"

namespace tidemark::cli {
namespace {

class DashboardView final : public WatchView {
 public:
  DashboardView(LineWriter& writer, std::unique_ptr<tui::Dashboard> dashboard)
      : writer_(writer), dashboard_(std::move(dashboard)) {}

  void begin(const RunInfo& info) override { dashboard_->begin(info); }
  void tick(const Tick& tick, const ProcessKey& trainer, const ProcessLookup& /*lookup*/) override {
    dashboard_->add(tick, trainer);
  }
  // The screen is gone then: what was told on it, and the summary, stay in the scroll-back.
  void end(const monitor::RunSummary& summary) override {
    dashboard_.reset();
    writer_.submit_always(std::exchange(told_, {}) + summary_text(summary));
  }

  int news_fd() const override { return dashboard_->news_fd(); }
  bool attend() override {
    dashboard_->take_news();
    return !dashboard_->is_closed();
  }
  std::uint64_t take_marks() override { return dashboard_->take_marks(); }
  bool tell(const std::string& text) override {
    if (dashboard_ == nullptr) {
      return false;
    }
    told_ += text;
    dashboard_->tell(text);
    return true;
  }
  bool stay() override {
    dashboard_->set_ended();
    return true;
  }
  bool is_paused() const override { return dashboard_->is_paused(); }

 private:
  LineWriter& writer_;
  std::unique_ptr<tui::Dashboard> dashboard_;
  std::string told_;
};

}  // namespace

bool dashboard_is_possible() { return tui::dashboard_is_possible(); }

std::unique_ptr<WatchView> make_dashboard_view(LineWriter& lines, const DashboardSetup& setup) {
  auto dashboard = tui::Dashboard::open({setup.can_mark,
                                         setup.replay_speed,
                                         setup.output_path,
                                         setup.run_file,
                                         {setup.warmup, setup.min_leak, setup.metric}});
  return dashboard ? std::make_unique<DashboardView>(lines, *std::move(dashboard)) : nullptr;
}

}  // namespace tidemark::cli
