// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "common/units.h"
#include "dashboard/model_builder.h"

namespace tidemark::dashboard {
namespace {

// Of the memory there is, what is left; and the share of time that tasks wait for memory (PSI).
constexpr double kLittleLeft = 0.1;
constexpr double kNextToNothing = 0.05;
constexpr double kMuchPressure = 10.0;  // percent

std::uint64_t below(std::uint64_t whole, std::uint64_t part) {
  return whole - std::min(whole, part);
}

Tone tone_of(const std::optional<double>& used_share, const std::optional<double>& some,
             const std::optional<double>& full) {
  const double left = 1.0 - used_share.value_or(0.0);
  if (left < kNextToNothing || full.value_or(0.0) >= kMuchPressure) {
    return Tone::kBad;
  }
  return left < kLittleLeft || some.value_or(0.0) >= kMuchPressure ? Tone::kWatch : Tone::kUnknown;
}

std::string pressure_text(const std::optional<double>& some, const std::optional<double>& full) {
  if (!some) {
    return "";
  }
  std::string text = fmt::format("pressure {}", format_percent(*some / 100.0));
  if (full.value_or(0.0) >= 0.5) {
    text += fmt::format(" (all stopped {})", format_percent(*full / 100.0));
  }
  return text;
}

}  // namespace

MachineModel build_machine(const std::optional<SystemSample>& system) {
  MachineModel machine;
  if (!system) {
    return machine;
  }
  const auto add = [&](std::string text) {
    if (!text.empty()) {
      machine.figures.push_back(std::move(text));
    }
  };
  if (system->total_bytes && system->available_bytes) {
    const std::uint64_t used = below(*system->total_bytes, *system->available_bytes);
    machine.used_share = static_cast<double>(used) /
                         static_cast<double>(std::max<std::uint64_t>(1, *system->total_bytes));
    add(fmt::format("used {} of {}", format_bytes(used), format_bytes(*system->total_bytes)));
    add(fmt::format("available {}", format_bytes(*system->available_bytes)));
  }
  machine.tone = tone_of(machine.used_share, system->psi_some_avg10, system->psi_full_avg10);
  if (system->cgroup_used_bytes && system->cgroup_limit_bytes) {
    const std::string pressure =
        pressure_text(system->cgroup_psi_some_avg10, system->cgroup_psi_full_avg10);
    add(fmt::format("cgroup {} of {}{}", format_bytes(*system->cgroup_used_bytes),
                    format_bytes(*system->cgroup_limit_bytes),
                    pressure.empty() ? "" : ", its " + pressure));
    const double share =
        static_cast<double>(*system->cgroup_used_bytes) /
        static_cast<double>(std::max<std::uint64_t>(1, *system->cgroup_limit_bytes));
    machine.tone = std::max(
        machine.tone, tone_of(share, system->cgroup_psi_some_avg10, system->cgroup_psi_full_avg10));
  }
  add(pressure_text(system->psi_some_avg10, system->psi_full_avg10));
  const bool has_swap = system->swap_total_bytes.value_or(0) > 0;
  if (has_swap && system->swap_free_bytes) {
    add(fmt::format("swap {} of {}",
                    format_bytes(below(*system->swap_total_bytes, *system->swap_free_bytes)),
                    format_bytes(*system->swap_total_bytes)));
  }
  if (system->dev_shm_bytes) {
    const std::uint64_t unheld = system->dev_shm_unheld_bytes.value_or(0);
    add(fmt::format("/dev/shm {}{}", format_bytes(*system->dev_shm_bytes),
                    unheld > 0 ? fmt::format(", {} held by nobody", format_bytes(unheld)) : ""));
  }
  if (system->swap_total_bytes && !has_swap) {
    add("no swap");
  }
  return machine;
}

}  // namespace tidemark::dashboard
