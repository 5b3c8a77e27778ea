// SPDX-License-Identifier: Apache-2.0
#include "cli/monitor.h"

#include <memory>
#include <string_view>

#include "cli/monitor_view.h"
#include "cli/watch.h"

namespace tidemark::cli {
namespace {

class Monitor final : public WatchUser {
 public:
  explicit Monitor(bool json) : json_(json) {}

  std::string_view name() const override { return "monitor"; }
  std::unique_ptr<WatchView> make_view(LineWriter& lines) override {
    return json_ ? make_json_view(lines) : make_plain_view(lines);
  }
  // Transparent around a command.
  int exit_code(const WatchEnding& ending) override {
    return ending.command_status.value_or(ending.own_code);
  }

 private:
  bool json_;
};

}  // namespace

int run_monitor(const MonitorOptions& options) {
  Monitor monitor(options.watch.json);
  return Watch(options.watch, monitor).run();
}

}  // namespace tidemark::cli
