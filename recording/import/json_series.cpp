// SPDX-License-Identifier: Apache-2.0
#include "recording/import/importers.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/text.h"
#include "recording/import/import_feed.h"

namespace tidemark::recording {

namespace {

using nlohmann::json;

struct Factor {
  std::string_view name;
  double factor;
};

constexpr Factor kTimeFactors[] = {
    {"seconds", 1.0},  {"s", 1.0},    {"milliseconds", 1e-3}, {"ms", 1e-3},
    {"minutes", 60.0}, {"min", 60.0}, {"hours", 3600.0},      {"h", 3600.0},
};
// As in CSV: powers of 1024.
constexpr Factor kSizeKeys[] = {
    {"y_mb", 1048576.0}, {"y_mib", 1048576.0},   {"y_bytes", 1.0},        {"y_kb", 1024.0},
    {"y_kib", 1024.0},   {"y_gb", 1073741824.0}, {"y_gib", 1073741824.0},
};

std::string text_at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::vector<std::optional<double>> numbers(const json& list, double factor) {
  std::vector<std::optional<double>> values;
  values.reserve(list.size());
  for (const json& item : list) {
    values.push_back(item.is_number() ? std::optional(item.get<double>() * factor) : std::nullopt);
  }
  return values;
}

Error bad_series(const std::string& file, const std::string& id, std::string_view why) {
  return Error{Errc::kMalformed,
               fmt::format("{}: series '{}' {}", file, shorten(escape_text(id), 60), why)};
}

Result<JsonSeries> parse_one(const json& object, std::size_t number, const std::string& file) {
  JsonSeries series;
  series.id = object.is_object() ? text_at(object, "id") : std::string();
  if (series.id.empty()) {
    series.id = fmt::format("series {}", number);
  }
  if (!object.is_object()) {
    return bad_series(file, series.id, "is not an object");
  }
  const std::string unit = text_at(object, "unit");
  double x_factor = 1.0;
  series.is_steps = !unit.empty();  // batches, iterations, requests: whatever is no time
  for (const Factor& candidate : kTimeFactors) {
    if (unit == candidate.name) {
      series.is_steps = false;
      x_factor = candidate.factor;
    }
  }
  const auto x = object.find("x");
  if (x == object.end() || !x->is_array()) {
    return bad_series(file, series.id, "has no list 'x'");
  }
  for (const Factor& candidate : kSizeKeys) {
    const auto y = object.find(candidate.name);
    if (y == object.end() || !y->is_array()) {
      continue;
    }
    if (y->size() != x->size()) {
      return bad_series(
          file, series.id,
          fmt::format("has {} values in 'x' but {} in '{}'", x->size(), y->size(), candidate.name));
    }
    series.x = numbers(*x, x_factor);
    series.y_bytes = numbers(*y, candidate.factor);
    series.metric = text_at(object, "metric");
    return series;
  }
  return bad_series(file, series.id, "has no list 'y_mb' (or y_bytes, y_kb, y_gb)");
}

}  // namespace

Result<std::vector<JsonSeries>> parse_json_series(std::string_view text, const std::string& file) {
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) {
    return Error{Errc::kMalformed,
                 fmt::format("{} is not valid JSON, or is JSON lines; what `monitor --json` prints "
                             "cannot be read back: record with -o FILE",
                             file)};
  }
  const json* list = &document;
  if (document.is_object() && document.contains("series")) {
    list = &document["series"];
  }
  const json single = list->is_object() ? json::array({*list}) : json();
  if (list->is_object()) {
    list = &single;
  }
  if (!list->is_array() || list->empty()) {
    return Error{Errc::kMalformed, fmt::format("{} is JSON, but holds no series", file)};
  }
  std::vector<JsonSeries> all;
  for (const json& object : *list) {
    TIDEMARK_TRY_ASSIGN(auto series, parse_one(object, all.size() + 1, file));
    all.push_back(std::move(series));
  }
  return all;
}

namespace {

constexpr std::size_t kMaxFileBytes = 64U << 20U;
constexpr double kMaxSeriesBytes = 0x1p53;
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
    BadLineCounter bad_lines(name_, summary, "point");
    ImportFeed feed(sink, bad_lines, summary);
    TIDEMARK_TRY_ASSIGN(auto points, collect(bad_lines));
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
  Result<std::vector<Point>> collect(BadLineCounter& bad_lines) const {
    std::vector<Point> points;
    std::uint64_t number = 0;  // over all series
    for (std::size_t s = 0; s < series_.size(); ++s) {
      const JsonSeries& series = series_[s];
      double last_x = 0.0;
      for (std::size_t i = 0; i < series.x.size(); ++i) {
        ++number;
        bad_lines.count_line();
        const double x = series.x[i].value_or(NAN);
        const double bytes = series.y_bytes[i].value_or(NAN);
        if (!(x >= last_x) || !(x <= kMaxX) || !(bytes >= 0.0) || !(bytes <= kMaxSeriesBytes)) {
          if (const Status status =
                  bad_lines.bad(number, "x or y is not a number, is negative, or x goes back");
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
    // A single series is the trainer; the roles of several are unknown.
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
