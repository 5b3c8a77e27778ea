// SPDX-License-Identifier: Apache-2.0
#include "dashboard/model_builder.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "common/text.h"
#include "common/units.h"

namespace tidemark::dashboard {
namespace {

// Only keys that do something.
std::vector<std::string> keys_of(const ScreenInputs& inputs) {
  std::vector<std::string> keys = {"? help", "q quit",    "w why",       "space pause",
                                   "z zoom", "a axis",    "left cursor", "/ filter",
                                   "s sort", "enter open"};
  if (inputs.can_signal) {
    keys.emplace_back(inputs.is_attached ? "D detach" : "A attach");
    keys.emplace_back("K signal");
  }
  keys.insert(keys.end(), {"tab focus", "e export"});
  if (inputs.can_mark) {
    keys.emplace_back("m mark");
  }
  return keys;
}

// The processes of the tree on a device, the largest first.
std::string users_of(const GpuSample& gpu, const std::unordered_map<pid_t, std::string>& roles) {
  constexpr std::size_t kMost = 4;
  std::vector<GpuProcessUse> uses = gpu.processes;
  std::stable_sort(uses.begin(), uses.end(), [](const GpuProcessUse& a, const GpuProcessUse& b) {
    return a.used_bytes.value_or(0) > b.used_bytes.value_or(0);
  });
  std::string text;
  for (std::size_t i = 0; i < std::min(uses.size(), kMost); ++i) {
    const auto role = roles.find(uses[i].pid);
    text +=
        fmt::format("{}{}{} {}", i == 0 ? "" : ", ", role == roles.end() ? "" : role->second + " ",
                    uses[i].pid, format_bytes(uses[i].used_bytes));
  }
  return uses.size() > kMost ? fmt::format("{}, {} more", text, uses.size() - kMost) : text;
}

std::vector<GpuModel> gpus_of(const RunHistory& history) {
  std::unordered_map<pid_t, std::string> roles;
  for (const auto& [key, process] : history.processes()) {
    roles[key.pid] = role_name(process.record.role);
  }
  std::vector<GpuModel> gpus;
  for (const GpuSample& gpu : history.gpus()) {
    GpuModel model;
    constexpr std::string_view kMaker = "NVIDIA ";  // they all begin like that
    const std::string_view name =
        std::string_view(gpu.name).substr(gpu.name.starts_with(kMaker) ? kMaker.size() : 0);
    model.name = fmt::format("{} {}", gpu_label(gpu.index), shorten(escape_text(name), 24));
    model.used_bytes = gpu.used_bytes;
    model.total_bytes = gpu.total_bytes;
    model.busy_percent = gpu.busy_percent;
    model.is_lost = gpu.is_lost;
    model.age_s = gpu.age_s;
    model.processes = users_of(gpu, roles);
    gpus.push_back(std::move(model));
  }
  return gpus;
}

std::string state_of(const ViewState& state, const ScreenInputs& inputs) {
  std::string text = inputs.replay_speed ? fmt::format("REPLAY {:g}x", *inputs.replay_speed) : "";
  const auto add = [&](std::string_view word) {
    text += (text.empty() ? "" : " ") + std::string(word);
  };
  if (inputs.is_attached) {
    add("ATTACHED");
  }
  if (inputs.has_ended) {
    add("ENDED");
  }
  if (state.is_paused && !(inputs.has_ended && inputs.replay_speed)) {
    add(inputs.replay_speed ? "STOPPED" : "PAUSED");
  }
  return text;
}

}  // namespace

report::JudgedTarget target_of(const RunHistory& history, const ScreenInputs& inputs) {
  report::JudgedTarget target = inputs.target;
  if (history.all_have_exited() || inputs.has_ended || inputs.replay_speed) {
    target.running.clear();
  } else if (target.running.empty() && history.trainer().pid > 0) {
    target.running = fmt::format("--pid {}", history.trainer().pid);  // a command that runs
  }
  return target;
}

DashboardModel build_model(const RunHistory& history,
                           const std::optional<tracker::JudgedRun>& judged, const ViewState& state,
                           const ScreenInputs& inputs) {
  DashboardModel model;
  model.banner = build_banner(history, judged);
  if (judged) {
    model.banner.next = report::next_text(*judged, target_of(history, inputs));
  }
  model.machine = build_machine(history.system());
  model.timeline = build_timeline(history, judged, state, inputs);
  model.tree = build_tree(history, state, inputs.cpu);
  add_cursor(model.timeline, history, judged, state, model.tree, inputs.plot_columns);
  model.detail = build_detail(history, judged, model.tree);
  model.gpus = gpus_of(history);
  model.sites = inputs.sites;
  model.jobs = inputs.jobs;
  model.output = inputs.output;
  model.output_path = inputs.output_path;
  model.status.message = inputs.message;
  model.status.state = state_of(state, inputs);
  model.status.keys = keys_of(inputs);
  model.overlay = build_overlay(history, judged, state, inputs);
  return model;
}

}  // namespace tidemark::dashboard
