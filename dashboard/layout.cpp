// SPDX-License-Identifier: Apache-2.0
#include "dashboard/layout.h"

#include <algorithm>
#include <string_view>

#include "common/text.h"

namespace tidemark::dashboard {
namespace {

constexpr int kLeastTree = 5;

// A pane with a title and at most `most` lines, as many as can be spared.
int pane(std::size_t lines, int most, int& left, int least_tree = kLeastTree) {
  if (lines == 0) {
    return 0;
  }
  constexpr int kLeast = 2;  // the title and a line
  const int wanted = std::min(
      1 + std::min(static_cast<int>(std::min<std::size_t>(lines, 100)), most), left - least_tree);
  if (wanted < kLeast) {
    return 0;
  }
  left -= wanted;
  return wanted;
}

}  // namespace

Layout plan_layout(const DashboardModel& model, int width, int height) {
  Layout layout;
  layout.width = width;
  layout.height = height;
  if (width < kLeastWidth || height < kLeastHeight) {
    layout.is_too_small = true;
    return layout;
  }
  layout.banner = height < 14 ? 2 : height >= 28 && !model.banner.next.empty() ? 4 : 3;
  layout.machine = height < 14 || model.machine.figures.empty() ? 0 : 1;
  int left = height - layout.banner - layout.machine - layout.status;
  layout.timeline = std::clamp(left * 2 / 5, 4, 26);
  layout.has_marks_line = layout.timeline >= 7;
  layout.has_phases_line = layout.timeline >= 8 && !model.timeline.phases.empty();
  left -= layout.timeline;
  const bool is_roomy = height >= 30;
  layout.gpu = pane(model.gpus.size(), is_roomy ? 8 : 4, left);
  layout.sites = pane(model.sites.size(), is_roomy ? 6 : 3, left);
  layout.jobs = pane(model.jobs.size(), is_roomy ? 6 : 3, left);
  if (!model.output_path.empty() && height >= 20) {
    layout.output = pane(is_roomy ? 4 : 2, 4, left);
  }
  if (height >= 24) {
    layout.detail = pane(model.detail ? 4 : 0, 4, left, is_roomy ? kLeastTree : kLeastTree + 2);
  }
  // What a short tree does not need makes the curve finer.
  const int needed = std::max(
      kLeastTree, static_cast<int>(std::min<std::size_t>(model.tree.rows.size(), 1000)) + 3);
  const int spare = std::clamp(left - needed, 0, std::max(0, height / 2 - layout.timeline));
  layout.timeline += spare;
  layout.tree = left - spare;
  return layout;
}

std::size_t first_visible_row(const TreeModel& tree, std::size_t shown) {
  const std::size_t rows = tree.rows.size();
  if (rows <= shown || shown == 0) {
    return 0;
  }
  const std::size_t least = tree.selected >= shown ? tree.selected - shown + 1 : 0;
  const std::size_t most = std::min(tree.selected, rows - shown);
  return std::clamp(tree.first_row, std::min(least, most), most);
}

OverlayPage overlay_page(const OverlayModel& overlay, const Layout& layout) {
  constexpr int kMostColumns = 76;
  constexpr int kTitles = 2;  // a line above and one below
  const auto columns = static_cast<std::size_t>(std::clamp(layout.width - 4, 1, kMostColumns));
  OverlayPage page;
  for (const OverlayLine& line : overlay.lines) {
    const std::string wrapped = wrap_text(line.label, line.text, columns);
    std::string_view rest = wrapped;
    while (const auto part = next_line(rest)) {
      page.lines.push_back(shorten(*part, columns));  // a word may be longer than that
    }
  }
  page.shown =
      std::min(page.lines.size(), static_cast<std::size_t>(std::max(0, layout.height - kTitles)));
  page.first = std::min(overlay.first_line, page.last_first());
  return page;
}

Scene scene_of(const DashboardModel& model, const Layout& layout) {
  Scene scene;
  scene.rows.reserve(model.tree.rows.size());
  for (const TreeRow& row : model.tree.rows) {
    scene.rows.push_back(row.id);
  }
  scene.selected = model.tree.selected;
  if (layout.is_too_small) {
    return scene;
  }
  if (model.overlay) {
    scene.last_overlay_line = overlay_page(*model.overlay, layout).last_first();
  }
  const auto shown = static_cast<std::size_t>(std::max(0, layout.tree_rows()));
  scene.first_row = first_visible_row(model.tree, shown);
  scene.rows_shown = std::min(shown, scene.rows.size() - scene.first_row);
  scene.timeline_y = layout.banner + layout.machine;
  scene.timeline_height = layout.timeline;
  scene.plot_x = kPlotX;
  scene.plot_columns = std::max(1, layout.width - kPlotX);
  scene.has_limit = model.timeline.limit_bytes.has_value();
  scene.first_row_y =
      scene.timeline_y + layout.timeline + layout.gpu + layout.sites + layout.jobs + 2;
  return scene;
}

}  // namespace tidemark::dashboard
