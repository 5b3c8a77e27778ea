// SPDX-License-Identifier: Apache-2.0
#include "recording/import/json_series.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/text.h"
#include "recording/import/import_feed.h"
#include "recording/import/json_series_parse.h"
#include "recording/import/line_account.h"

namespace tidemark::recording {
namespace {

constexpr std::size_t kMaxFileBytes = 64U << 20U;
constexpr double kMaxBytes = 0x1p53;
constexpr double kMaxX = 0x1p53;

std::string list_of_ids(const std::vector<JsonSeries>& all) {
  constexpr std::size_t kShown = 12;
  std::string text;
  for (std::size_t i = 0; i < std::min(all.size(), kShown); ++i) {
    text += (i == 0 ? "" : ", ") + shorten(escape_text(all[i].id), 40);
  }
  return all.size() > kShown ? text + fmt::format(" and {} more", all.size() - kShown) : text;
}

struct Point {
  double x;
  std::size_t series;
  std::uint64_t bytes;
};

class JsonSeriesReader final : public RecordingReader {
 public:
  JsonSeriesReader(std::string name, std::vector<JsonSeries> series)
      : name_(std::move(name)), series_(std::move(series)) {
    info_.format = "json-series";
    info_.time_is_steps = series_.front().is_steps;
    info_.ended_cleanly = true;
  }

  const RunInfo& info() const override { return info_; }

  Result<ReadSummary> read(RecordingSink& sink) override {
    ReadSummary summary;
    LineAccount account(name_, summary, "point");
    ImportFeed feed(sink, account, summary);
    TIDEMARK_TRY_ASSIGN(auto points, collect(account));
    std::stable_sort(points.begin(), points.end(),
                     [](const Point& a, const Point& b) { return a.x < b.x; });
    TIDEMARK_TRY(deliver(points, feed));
    TIDEMARK_TRY(feed.finish(name_));
    for (const JsonSeries& series : series_) {
      if (!series.metric.empty() && series.metric.find("RSS") == std::string::npos) {
        summary.notes.push_back(fmt::format("'{}' is {}; it is kept as rss",
                                            shorten(escape_text(series.id), 40),
                                            shorten(escape_text(series.metric), 60)));
      }
    }
    return summary;
  }

 private:
  Result<std::vector<Point>> collect(LineAccount& account) const {
    std::vector<Point> points;
    std::uint64_t number = 0;  // over all series
    for (std::size_t s = 0; s < series_.size(); ++s) {
      const JsonSeries& series = series_[s];
      double last_x = 0.0;
      for (std::size_t i = 0; i < series.x.size(); ++i) {
        ++number;
        account.count_line();
        const double x = series.x[i].value_or(NAN);
        const double bytes = series.y_bytes[i].value_or(NAN);
        if (!(x >= last_x) || !(x <= kMaxX) || !(bytes >= 0.0) || !(bytes <= kMaxBytes)) {
          if (const Status status =
                  account.bad(number, "x or y is not a number, is negative, or x goes back");
              !status) {
            return status.error();
          }
          continue;
        }
        last_x = x;
        points.push_back({x, s, static_cast<std::uint64_t>(std::llround(bytes))});
      }
    }
    return points;
  }

  Status deliver(const std::vector<Point>& points, ImportFeed& feed) const {
    std::vector<std::uint64_t> last_tick(series_.size(), 0);  // 0: not introduced yet
    std::uint64_t tick = 0;
    for (const Point& point : points) {
      const bool is_repeated = tick > 0 && last_tick[point.series] == tick;
      if (!feed.has_tick() || point.x > feed.t_s() || is_repeated) {
        ++tick;
        TIDEMARK_TRY(feed.start_tick(point.x, info_));
        mark(point.x, feed);
      }
      add(point, last_tick[point.series] == 0, feed);
      last_tick[point.series] = tick;
    }
    return ok();
  }

  void mark(double x, ImportFeed& feed) const {
    if (!info_.time_is_steps) {
      return;
    }
    feed.set_step(static_cast<std::int64_t>(x));
  }

  void add(const Point& point, bool is_new, ImportFeed& feed) const {
    // One series is the process that somebody measured; of several nobody knows the roles.
    const Role role = series_.size() == 1 ? Role::kTrainer : Role::kOther;
    ProcessSample sample;
    sample.key = {0, point.series + 1};
    sample.rss_bytes = point.bytes;
    if (is_new) {
      ProcessRecord process;
      process.key = sample.key;
      process.role = role;
      process.comm = series_[point.series].id;
      feed.introduce(std::move(process));
    }
    feed.add(sample, role);
  }

  std::string name_;
  std::vector<JsonSeries> series_;
  RunInfo info_;
};

}  // namespace

Result<std::unique_ptr<RecordingReader>> open_json_series(TextInput input, const std::string& id) {
  TIDEMARK_TRY_ASSIGN(const auto text, input.read_rest(kMaxFileBytes));
  TIDEMARK_TRY_ASSIGN(auto all, parse_json_series(text, input.name()));
  std::string name = input.name();
  if (!id.empty()) {
    const auto chosen = std::find_if(all.begin(), all.end(),
                                     [&](const JsonSeries& series) { return series.id == id; });
    if (chosen == all.end()) {
      return Error{Errc::kNotFound, fmt::format("{} has no series '{}'; it has {}", name,
                                                escape_text(id), list_of_ids(all))};
    }
    std::vector<JsonSeries> one;
    one.push_back(std::move(*chosen));
    all = std::move(one);
    name += "#" + id;
  }
  const bool is_steps = all.front().is_steps;
  if (std::any_of(all.begin(), all.end(),
                  [&](const JsonSeries& series) { return series.is_steps != is_steps; })) {
    return Error{
        Errc::kUsage,
        fmt::format("{} holds series over time and series over steps, which cannot be read "
                    "together; choose one as {}#ID: {}",
                    name, name, list_of_ids(all))};
  }
  return std::unique_ptr<RecordingReader>(new JsonSeriesReader(std::move(name), std::move(all)));
}

}  // namespace tidemark::recording
