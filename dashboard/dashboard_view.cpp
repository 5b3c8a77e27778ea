// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>

#include <ftxui/dom/node.hpp>
#include <ftxui/screen/screen.hpp>

#include "common/text.h"
#include "dashboard/layout.h"
#include "dashboard/views.h"

namespace tidemark::dashboard {
namespace {

using ftxui::Element;
using ftxui::Elements;

// Names of processes and what they write may have any character.
void replace_all_but_ascii(ftxui::Screen& screen) {
  for (int y = 0; y < screen.dimy(); ++y) {
    for (int x = 0; x < screen.dimx(); ++x) {
      std::string& character = screen.at(x, y);
      if (character.size() != 1 || static_cast<unsigned char>(character[0]) >= 0x80U) {
        character.assign(1, '?');  // also the empty second half of a wide one
      }
    }
  }
}

ftxui::Screen draw(const DashboardModel& model, int width, int height, const Theme& theme) {
  ftxui::Screen screen(std::max(1, width), std::max(1, height));
  const Layout layout = plan_layout(model, width, height);
  ftxui::Render(screen, dashboard_view(model, layout, theme));
  if (!theme.utf8) {
    replace_all_but_ascii(screen);
  }
  return screen;
}

}  // namespace

Element dashboard_view(const DashboardModel& model, const Layout& layout, const Theme& theme) {
  if (layout.is_too_small) {
    return small_view(model, theme);
  }
  const int width = layout.width;
  Elements parts = {banner_view(model.banner, width, layout.banner, theme),
                    timeline_view(model.timeline, layout, theme)};
  if (layout.gpu > 0) {
    parts.push_back(gpu_view(model.gpus, width, layout.gpu, theme));
  }
  if (layout.sites > 0) {
    parts.push_back(sites_view(model.sites, width, layout.sites, theme));
  }
  if (layout.jobs > 0) {
    parts.push_back(jobs_view(model.jobs, width, layout.jobs, theme));
  }
  parts.push_back(tree_view(model.tree, width, layout.tree, theme));
  if (layout.detail > 0 && model.detail) {
    parts.push_back(detail_view(*model.detail, width, layout.detail, theme));
  }
  if (layout.output > 0) {
    parts.push_back(output_view(model, width, layout.output, theme));
  }
  parts.push_back(status_view(model.status, width, theme));
  Element screen = ftxui::vbox(std::move(parts));
  return model.shows_help
             ? ftxui::dbox({screen, ftxui::center(help_view(help_page(model, layout), theme))})
             : screen;
}

std::vector<std::string> screen_lines(const DashboardModel& model, int width, int height,
                                      const Theme& theme) {
  const std::string drawn = draw(model, width, height, theme).ToString();
  std::vector<std::string> lines;
  std::string_view rest = drawn;
  while (const auto line = next_line(rest)) {  // without its \r
    lines.emplace_back(*line);
  }
  return lines;
}

std::vector<std::string> screen_text(const DashboardModel& model, int width, int height,
                                     const Theme& theme) {
  const ftxui::Screen screen = draw(model, width, height, theme);
  std::vector<std::string> lines;
  for (int y = 0; y < screen.dimy(); ++y) {
    std::string line;
    for (int x = 0; x < screen.dimx(); ++x) {
      line += screen.at(x, y);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace tidemark::dashboard
