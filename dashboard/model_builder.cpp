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
  std::vector<std::string> keys = {"? help", "q quit",     "space pause", "z zoom",  "/ filter",
                                   "s sort", "enter open", "tab focus",   "e export"};
  if (inputs.can_mark) {
    keys.emplace_back("m mark");
  }
  return keys;
}

std::vector<std::string> help_of(const ScreenInputs& inputs, bool time_is_steps) {
  std::vector<std::string> lines = {
      "q            quit",
      inputs.replay_speed ? "space        stop and go on" : "space        pause (watching goes on)",
      "up/down j k  select a process; in the timeline: zoom",
      "left/right   go back and forth in time (h l)",
      "enter        open or close a role",
      "tab          tree or timeline",
      "pgup pgdn    a page",
      "home end g G first and last",
      "/            filter by name, pid or command; esc clears",
      "s            sort by footprint, rss, change, rate, pid",
      time_is_steps ? "z            zoom: 60, 600, 3600 steps, all"
                    : "z            zoom: 1 min, 10 min, 1 h, all",
      "e            export this screen as text",
  };
  if (inputs.can_mark) {
    lines.emplace_back("m            mark this moment");
  }
  lines.insert(lines.end(), {
                                "ctrl-l       draw again",
                                "",
                                "Marks: + started, - exited, E epoch, W growth warning,",
                                "O OOM kill, X GPU lost, g gap, M your mark",
                            });
  return lines;
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
  if (inputs.has_ended) {
    add("ENDED");
  }
  if (state.is_paused && !(inputs.has_ended && inputs.replay_speed)) {
    add(inputs.replay_speed ? "STOPPED" : "PAUSED");
  }
  return text;
}

}  // namespace

DashboardModel build_model(const RunHistory& history,
                           const std::optional<tracker::JudgedRun>& judged, const ViewState& state,
                           const ScreenInputs& inputs) {
  DashboardModel model;
  model.banner = build_banner(history, judged);
  model.timeline = build_timeline(history, judged, state, inputs);
  model.tree = build_tree(history, state, inputs.cpu);
  model.detail = build_detail(history, judged, model.tree);
  model.gpus = gpus_of(history);
  model.sites = inputs.sites;
  model.jobs = inputs.jobs;
  model.output = inputs.output;
  model.output_path = inputs.output_path;
  model.status.message = inputs.message;
  model.status.state = state_of(state, inputs);
  model.status.keys = keys_of(inputs);
  model.shows_help = state.shows_help;
  if (state.shows_help) {
    model.help = help_of(inputs, history.info().time_is_steps);
    model.help_line = state.help_line;
    model.help.emplace_back();
    model.help.insert(model.help.end(), inputs.notes.rbegin(), inputs.notes.rend());
    for (const LossRecord& loss : history.losses()) {
      model.help.push_back(
          fmt::format("not seen: {} x{}", escape_text(loss.what.text()), loss.count));
    }
    if (model.help.back().empty()) {
      model.help.pop_back();  // nothing follows the keys
    }
  }
  return model;
}

}  // namespace tidemark::dashboard
