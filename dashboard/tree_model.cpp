// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "common/records.h"
#include "common/text.h"
#include "dashboard/model_builder.h"

namespace tidemark::dashboard {
namespace {

constexpr std::size_t kLongestCommand = 200;
constexpr std::size_t kManyAlike = 4;  // a role with so many is closed at first

std::int64_t difference(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::int64_t>(a) - static_cast<std::int64_t>(b);
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

double sort_value(const TreeRow& row, SortBy by) {
  constexpr double kUnknownLast = -1e300;
  switch (by) {
    case SortBy::kFootprint:
      if (row.footprint_bytes) {
        return static_cast<double>(*row.footprint_bytes);
      }
      [[fallthrough]];  // an imported run may have nothing but RSS
    case SortBy::kRss:
      return row.rss_bytes ? static_cast<double>(*row.rss_bytes) : kUnknownLast;
    case SortBy::kChange:
      return row.change_bytes ? static_cast<double>(*row.change_bytes) : kUnknownLast;
    case SortBy::kRate:
      return row.rate_bytes_per_s.value_or(kUnknownLast);
    case SortBy::kPid:
      return -static_cast<double>(row.id.key.pid);
  }
  return 0.0;
}

// One role with its members while the tree is put together.
struct Group {
  TreeRow head;
  std::vector<TreeRow> members;
};

class TreeBuilder {
 public:
  TreeBuilder(const RunHistory& history, const ViewState& state, const CpuShares& cpu)
      : history_(history), state_(state), cpu_(cpu), filter_(lower(state.filter)) {
    for (const GpuSample& gpu : history.gpus()) {
      for (const GpuProcessUse& use : gpu.processes) {
        if (use.used_bytes) {
          gpu_bytes_[use.pid] += *use.used_bytes;
        }
      }
    }
  }

  TreeModel build() {
    TreeModel tree;
    tree.processes = history_.tree().processes;
    tree.has_ended = history_.all_have_exited();
    tree.filter = state_.filter;
    tree.is_typing_filter = state_.is_typing_filter;
    tree.sort = state_.sort;
    tree.is_focused = state_.focus == Focus::kTree;
    tree.total = group_row(history_.tree());
    tree.total.change_bytes =
        history_.first_tree_bytes()
            ? std::optional(difference(bytes_of(history_.tree()), *history_.first_tree_bytes()))
            : std::nullopt;
    tree.shows_swap = history_.tree().swap_bytes > 0;
    tree.shows_gpu = !gpu_bytes_.empty();
    tree.shows_cpu = !cpu_.empty();
    tree.rate_is_per_step = history_.info().time_is_steps;
    put_rows(groups(), tree);
    tree.selected = find_selected(tree.rows);
    tree.first_row = state_.first_row;
    return tree;
  }

 private:
  static TreeRow group_row(const GroupSample& sum) {
    TreeRow row;
    row.is_role = true;
    row.footprint_bytes = sum.footprint_bytes;
    row.footprint_held = sum.footprint_held;
    row.rss_bytes = known_rss_bytes(sum);
    row.pss_bytes = sum.pss_bytes;
    row.swap_bytes = sum.swap_bytes;
    return row;
  }

  TreeRow process_row(const ProcessHistory& process) const {
    const ProcessRecord& record = process.record;
    const ProcessSample& sample = process.sample;
    TreeRow row;
    row.id = {record.role, record.key};
    row.name = record.rank
                   ? fmt::format("rank {}{}", *record.rank,
                                 record.key.pid > 0 ? fmt::format(" {}", record.key.pid) : "")
                   : name_of(record.role, record.key.pid);
    row.command = shorten(escape_text(command_of(record)), kLongestCommand);
    row.footprint_bytes = sample.footprint_bytes();
    row.rss_bytes = sample.rss_bytes;
    row.pss_bytes = sample.pss_bytes;
    row.pss_age_s = sample.pss_age_s;
    row.swap_bytes = sample.swap_bytes;
    row.is_trainer = record.key == history_.trainer();
    row.is_zombie = sample.state == 'Z';
    const auto bytes = bytes_of(sample);
    if (bytes && process.first_bytes) {
      row.change_bytes = difference(*bytes, *process.first_bytes);
    }
    row.rate_bytes_per_s = process.rate.bytes_per_s();
    if (const auto cpu = cpu_.find(record.key); cpu != cpu_.end()) {
      row.cpu_share = cpu->second;
    }
    if (const auto gpu = gpu_bytes_.find(record.key.pid); gpu != gpu_bytes_.end()) {
      row.gpu_bytes = gpu->second;
    }
    return row;
  }

  bool matches(const TreeRow& row) const {
    return filter_.empty() || lower(row.name).find(filter_) != std::string::npos ||
           lower(row.command).find(filter_) != std::string::npos;
  }

  std::vector<Group> groups() const {
    std::map<Role, Group> by_role;
    for (const auto& [key, process] : history_.processes()) {
      TreeRow row = process_row(process);
      by_role[row.id.role].members.push_back(std::move(row));
    }
    std::vector<Group> groups;
    for (auto& [role, group] : by_role) {
      fill_head(role, group);
      std::erase_if(group.members, [this](const TreeRow& row) { return !matches(row); });
      if (!group.members.empty()) {
        groups.push_back(std::move(group));
      }
    }
    return groups;
  }

  // The role as a whole, also where a filter hides some of its processes.
  void fill_head(Role role, Group& group) const {
    const auto& roles = history_.roles();
    const auto sum = std::find_if(roles.begin(), roles.end(),
                                  [&](const RoleSample& sample) { return sample.role == role; });
    if (sum != roles.end()) {
      group.head = group_row(sum->sum);
      const auto first = history_.first_role_bytes(role);
      group.head.change_bytes =
          first ? std::optional(difference(bytes_of(sum->sum), *first)) : std::nullopt;
    }
    if (const RecentRate* rate = history_.role_rate(role)) {
      group.head.rate_bytes_per_s = rate->bytes_per_s();
    }
    group.head.is_role = true;
    group.head.id = {role, {}};
    group.head.name = fmt::format(
        "{} x{}", role_name(role),
        sum != roles.end() ? sum->sum.processes : static_cast<std::uint32_t>(group.members.size()));
    double cpu = 0.0;
    bool all_known = true;
    for (const TreeRow& member : group.members) {
      cpu += member.cpu_share.value_or(0.0);
      all_known = all_known && member.cpu_share;
      if (member.gpu_bytes) {
        group.head.gpu_bytes = group.head.gpu_bytes.value_or(0) + *member.gpu_bytes;
      }
    }
    if (all_known) {
      group.head.cpu_share = cpu;
    }
    const bool opens =
        role == Role::kTrainer || role == Role::kRank || group.members.size() < kManyAlike;
    group.head.is_open = !filter_.empty() || opens != state_.flipped.contains(role);
  }

  template <typename Item, typename RowOf>
  void sort(std::vector<Item>& items, RowOf row_of) const {
    std::sort(items.begin(), items.end(), [&](const Item& a, const Item& b) {
      const double left = sort_value(row_of(a), state_.sort);
      const double right = sort_value(row_of(b), state_.sort);
      return left != right ? left > right
                           : std::pair(row_of(a).id.role, row_of(a).id.key) <
                                 std::pair(row_of(b).id.role, row_of(b).id.key);
    });
  }

  void put_rows(std::vector<Group> groups, TreeModel& tree) const {
    for (Group& group : groups) {
      sort(group.members, [](const TreeRow& row) -> const TreeRow& { return row; });
    }
    sort(groups, [this](const Group& group) -> const TreeRow& {
      return state_.sort == SortBy::kPid ? group.members.front() : group.head;
    });
    for (Group& group : groups) {
      if (group.members.size() == 1) {
        tree.rows.push_back(std::move(group.members.front()));  // no need for a head
        continue;
      }
      const bool is_open = group.head.is_open;
      tree.rows.push_back(std::move(group.head));
      if (is_open) {
        std::move(group.members.begin(), group.members.end(), std::back_inserter(tree.rows));
      }
    }
  }

  // At first the trainer. A process that has gone leaves its role selected.
  std::size_t find_selected(const std::vector<TreeRow>& rows) const {
    std::size_t of_role = 0;
    if (!state_.selected) {
      const auto trainer =
          std::find_if(rows.begin(), rows.end(), [](const TreeRow& row) { return row.is_trainer; });
      return trainer == rows.end() ? 0 : static_cast<std::size_t>(trainer - rows.begin());
    }
    for (std::size_t i = rows.size(); i-- > 0;) {
      if (rows[i].id == *state_.selected) {
        return i;
      }
      if (rows[i].id.role == state_.selected->role) {
        of_role = i;
      }
    }
    return of_role;
  }

  const RunHistory& history_;
  const ViewState& state_;
  const CpuShares& cpu_;
  std::string filter_;
  std::unordered_map<pid_t, std::uint64_t> gpu_bytes_;
};

}  // namespace

TreeModel build_tree(const RunHistory& history, const ViewState& state, const CpuShares& cpu) {
  return TreeBuilder(history, state, cpu).build();
}

}  // namespace tidemark::dashboard
