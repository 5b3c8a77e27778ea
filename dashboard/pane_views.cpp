// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <ftxui/screen/string.hpp>

#include "common/text.h"
#include "common/units.h"
#include "dashboard/views.h"
#include "report/chart_text.h"

namespace tidemark::dashboard {
namespace {

using ftxui::Color;
using ftxui::Element;
using ftxui::Elements;
using ftxui::text;

std::string bar(double share, std::size_t width, bool utf8) {
  const auto filled =
      static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(width));
  std::string text_of_bar;
  for (std::size_t x = 0; x < width; ++x) {
    text_of_bar += x < filled ? (utf8 ? "█" : "#") : (utf8 ? "░" : ".");
  }
  return text_of_bar;
}

std::size_t columns_left(int width, std::size_t used) {
  const auto all = static_cast<std::size_t>(std::max(0, width));
  return all > used ? all - used : 0;
}

Element gpu_line(const GpuModel& gpu, std::size_t name_columns, int width, const Theme& theme) {
  constexpr std::size_t kLeastForUsers = 12;
  const std::size_t bar_columns = width >= 110 ? 20 : 10;
  std::string line = fmt::format("{:<{}} ", shorten(gpu.name, name_columns), name_columns);
  if (gpu.is_lost) {
    line +=
        fmt::format("LOST{}", width >= 80 ? ": its driver cannot reach it (dmesg | grep Xid)" : "");
    return text(line) | tone_style(Tone::kBad, theme);
  }
  std::size_t extra_bytes = 0;  // of characters that take more than one
  if (gpu.used_bytes && gpu.total_bytes && *gpu.total_bytes > 0 && width >= 80) {
    const std::string drawn =
        bar(static_cast<double>(*gpu.used_bytes) / static_cast<double>(*gpu.total_bytes),
            bar_columns, theme.utf8);
    extra_bytes = drawn.size() - bar_columns;
    line += drawn + " ";
  }
  line += fmt::format("{} of {}", format_bytes(gpu.used_bytes), format_bytes(gpu.total_bytes));
  if (gpu.busy_percent) {
    line += fmt::format("  {:>3} %", *gpu.busy_percent);
  }
  const std::size_t left = columns_left(width, line.size() - extra_bytes + 2);
  if (!gpu.processes.empty() && left >= kLeastForUsers) {
    line += "  " + shorten(gpu.processes, left);
  }
  return text(line) | tone_style(gpu.age_s > 0.0 ? Tone::kWatch : Tone::kUnknown, theme);
}

}  // namespace

// The word stands for the colour too. Figures that have no room are left out, and the bar first.
Element machine_view(const MachineModel& machine, int width, const Theme& theme) {
  const std::string name = machine.tone == Tone::kBad     ? "machine FULL "
                           : machine.tone == Tone::kWatch ? "machine LOW "
                                                          : "machine ";
  std::string figures;
  for (const std::string& figure : machine.figures) {
    const std::string longer = fmt::format("{}{}{}", figures, figures.empty() ? "" : "  ", figure);
    if (longer.size() <= columns_left(width, name.size())) {
      figures = longer;
    }
  }
  constexpr std::size_t kBar = 10;
  const bool has_bar =
      machine.used_share && columns_left(width, name.size() + figures.size()) > kBar;
  const std::string drawn =
      has_bar ? bar(*machine.used_share, kBar, theme.utf8) + " " : std::string();
  return text(name + drawn + figures) | tone_style(machine.tone, theme);
}

Element detail_view(const DetailModel& detail, int width, int lines, const Theme& theme) {
  Elements rows;
  const std::size_t room = columns_left(width, detail.title.size() + 12);
  const auto glyphs = theme.utf8 ? report::Glyphs::kUtf8 : report::Glyphs::kAscii;
  rows.push_back(
      title_line(detail.title, report::change_sparkline(detail.curve, room, glyphs), false, theme));
  for (const std::string& line : detail.lines) {
    rows.push_back(text(shorten(line, static_cast<std::size_t>(std::max(1, width)))));
  }
  return exactly(std::move(rows), lines);
}

Element gpu_view(const std::vector<GpuModel>& gpus, int width, int lines, const Theme& theme) {
  if (gpus.empty()) {
    return ftxui::emptyElement();
  }
  Elements rows;
  const double age_s = gpus.front().age_s;  // all are read together
  rows.push_back(
      title_line("GPU", age_s > 0.0 ? fmt::format("no answer, {} old", format_duration(age_s)) : "",
                 false, theme));
  std::size_t longest = 0;
  for (const GpuModel& gpu : gpus) {
    longest = std::max(longest, gpu.name.size());
  }
  const auto name_columns =
      std::min<std::size_t>(longest, static_cast<std::size_t>(std::clamp(width / 4, 14, 28)));
  const auto shown = static_cast<std::size_t>(std::max(0, lines - 1));
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (i + 1 == shown && gpus.size() > shown) {
      rows.push_back(text(fmt::format("and {} more", gpus.size() - i)));
      break;
    }
    rows.push_back(gpu_line(gpus[i], name_columns, width, theme));
  }
  return exactly(std::move(rows), lines);
}

Element sites_view(const std::vector<SiteRow>& sites, int width, int lines, const Theme& theme) {
  Elements rows;
  rows.push_back(title_line("lines of code that grow", "", false, theme));
  for (const SiteRow& site : sites) {
    const std::string figures =
        fmt::format("{:>13} {:>10}  {:<8} ",
                    site.rate_bytes_per_s
                        ? format_rate(*site.rate_bytes_per_s, RateUnit::kSecond, {.has_sign = true})
                        : "?",
                    format_bytes(site.live_bytes), site.verdict);
    rows.push_back(text(figures + shorten(site.place, columns_left(width, figures.size()))));
  }
  return exactly(std::move(rows), lines);
}

Element jobs_view(const std::vector<JobRow>& jobs, int width, int lines, const Theme& theme) {
  Elements rows;
  rows.push_back(title_line("jobs", "", false, theme));
  const auto shown = static_cast<std::size_t>(std::max(0, lines - 1));
  // The last ones: what runs, and what has just ended.
  for (std::size_t i = jobs.size() > shown ? jobs.size() - shown : 0; i < jobs.size(); ++i) {
    const JobRow& job = jobs[i];
    std::string figures =
        fmt::format("{:<10} {:>11} kept  ", job.state, format_bytes_delta(job.kept_bytes));
    if (width >= 80) {
      figures += fmt::format("peak {:>8}  {:<12}", format_bytes(job.peak_bytes),
                             job.step ? fmt::format("step {}", *job.step) : "");
    }
    rows.push_back(text(figures + shorten(job.name, columns_left(width, figures.size()))));
  }
  return exactly(std::move(rows), lines);
}

Element output_view(const DashboardModel& model, int width, int lines, const Theme& theme) {
  Elements rows;
  rows.push_back(title_line("output of the command", model.output_path, false, theme));
  const auto shown = static_cast<std::size_t>(std::max(0, lines - 1));
  const std::size_t first = model.output.size() > shown ? model.output.size() - shown : 0;
  for (std::size_t i = first; i < model.output.size(); ++i) {
    rows.push_back(text(shorten(model.output[i], static_cast<std::size_t>(std::max(1, width)))) |
                   ftxui::dim);
  }
  return exactly(std::move(rows), lines);
}

Element status_view(const StatusModel& status, int width, const Theme& theme) {
  Elements parts;
  if (!status.state.empty()) {
    parts.push_back(text(" " + status.state + " ") | ftxui::inverted | ftxui::bold);
    parts.push_back(text(" "));
  }
  std::size_t left = columns_left(width, status.state.empty() ? 0 : status.state.size() + 3);
  std::string words = shorten(status.message, left);
  if (words.empty()) {
    for (const std::string& key : status.keys) {
      if (key.size() + 2 > left) {
        break;
      }
      left -= key.size() + 2;
      words += key + "  ";
    }
  }
  parts.push_back(text(words) | ink(Color::Cyan, theme));
  return ftxui::hbox(std::move(parts));
}

Element overlay_view(const OverlayModel& overlay, const OverlayPage& page, const Theme& theme) {
  const bool scrolls = page.last_first() > 0;
  const std::string keys = overlay.is_question ? ""
                           : scrolls           ? "up/down scroll, others close"
                                               : "any key closes";
  std::size_t widest = keys.size() + overlay.title.size() + 8;
  for (const std::string& line : page.lines) {
    widest = std::max(widest, static_cast<std::size_t>(ftxui::string_width(line)));
  }
  Elements rows;
  rows.push_back(title_line(overlay.title, keys, true, theme));
  const std::size_t end = page.first + page.shown;
  for (std::size_t i = page.first; i < end; ++i) {
    rows.push_back(text(" " + page.lines[i]));
  }
  rows.push_back(
      title_line("", scrolls ? fmt::format("{} of {}", end, page.lines.size()) : "", true, theme));
  return ftxui::vbox(std::move(rows)) |
         ftxui::size(ftxui::WIDTH, ftxui::EQUAL, static_cast<int>(widest) + 2) | ftxui::clear_under;
}

Element small_view(const DashboardModel& model, const Theme& theme) {
  const TreeRow& total = model.tree.total;
  return text(
             fmt::format("{} {}{}", model.banner.word, format_bytes(total.footprint_bytes),
                         total.change_bytes ? " " + format_bytes_delta(*total.change_bytes) : "")) |
         tone_style(model.banner.tone, theme);
}

}  // namespace tidemark::dashboard
