// SPDX-License-Identifier: Apache-2.0
#include "monitor/gpu/gpu_watch.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace tidemark::monitor {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLong{10'000};
constexpr milliseconds kMoment{20};

// A driver that answers when it is let: what the test and the watching thread share.
class Gate {
 public:
  void close() { set(false); }
  void open() { set(true); }
  void pass() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return is_open_; });
  }
  void wait_for_arrivals(int count) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, kLong, [&] { return arrived_ >= count; }));
  }

 private:
  void set(bool is_open) {
    const std::lock_guard lock(mutex_);
    is_open_ = is_open;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = true;
  int arrived_ = 0;
};

class GatedSource final : public GpuSource {
 public:
  explicit GatedSource(std::shared_ptr<Gate> gate) : gate_(std::move(gate)) {}

  Result<std::vector<GpuSample>> sample(std::span<const pid_t> pids) override {
    gate_->pass();
    ++samples_;
    losses_.failed_queries = 1;
    if (samples_ == fail_at) {
      return Error{Errc::kIo, "scripted"};
    }
    GpuSample gpu;
    gpu.used_bytes = samples_;
    for (const pid_t pid : pids) {
      gpu.processes.push_back({pid, 1});
    }
    return std::vector<GpuSample>{gpu};
  }
  const GpuLosses& losses() const override { return losses_; }

  std::uint64_t fail_at = 0;

 private:
  std::shared_ptr<Gate> gate_;
  GpuLosses losses_;
  std::uint64_t samples_ = 0;
};

GpuWatch::Options options_of(std::shared_ptr<Gate> gate, milliseconds timeout,
                             std::uint64_t fail_at = 0) {
  GpuWatch::Options options;
  options.open = [gate = std::move(gate), fail_at]() -> Result<std::unique_ptr<GpuSource>> {
    auto source = std::make_unique<GatedSource>(gate);
    source->fail_at = fail_at;
    return std::unique_ptr<GpuSource>(std::move(source));
  };
  options.timeout = timeout;
  return options;
}

TEST(GpuWatch, GivesTheAnswerToItsOwnQuestion) {
  GpuWatch watch(options_of(std::make_shared<Gate>(), kLong));
  ASSERT_FALSE(watch.wait_until_open(kLong));

  const auto gpus = watch.sample(std::vector<pid_t>{7});

  ASSERT_TRUE(gpus);
  EXPECT_TRUE(watch.is_fresh());
  EXPECT_EQ(gpus->at(0).age_s, 0.0);
  EXPECT_EQ(gpus->at(0).processes.at(0).pid, 7);
  EXPECT_EQ(watch.losses().failed_queries, 1U);
}

TEST(GpuWatch, RepeatsWhatItKnowsWithItsAgeWhileTheDriverHangs) {
  const auto gate = std::make_shared<Gate>();
  GpuWatch watch(options_of(gate, kMoment));
  ASSERT_FALSE(watch.wait_until_open(kLong));
  auto first = watch.sample({});
  while (first && first->empty()) {  // on a slow machine
    first = watch.sample({});
  }
  ASSERT_TRUE(first);
  gate->close();

  const auto second = watch.sample({});
  const auto third = watch.sample({});

  ASSERT_TRUE(second && third);
  EXPECT_FALSE(watch.is_fresh());
  EXPECT_EQ(second->at(0).used_bytes, first->at(0).used_bytes);
  EXPECT_GT(second->at(0).age_s, 0.0);
  EXPECT_GT(third->at(0).age_s, second->at(0).age_s);
  EXPECT_EQ(watch.losses().failed_queries, 0U);  // those of the first were told with it
  gate->open();
}

TEST(GpuWatch, GivesFiguresAgainWhenTheDriverComesBack) {
  const auto gate = std::make_shared<Gate>();
  GpuWatch watch(options_of(gate, kMoment));
  ASSERT_FALSE(watch.wait_until_open(kLong));
  gate->close();
  const auto none = watch.sample({});
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->empty());
  EXPECT_FALSE(watch.is_fresh());
  gate->wait_for_arrivals(1);

  gate->open();

  auto gpus = watch.sample({});
  while (gpus && !watch.is_fresh()) {
    gpus = watch.sample({});
  }
  ASSERT_TRUE(gpus);
  EXPECT_EQ(gpus->at(0).age_s, 0.0);
}

TEST(GpuWatch, PassesOnWhatTheDriverRefuses) {
  GpuWatch watch(options_of(std::make_shared<Gate>(), kLong, /*fail_at=*/1));
  ASSERT_FALSE(watch.wait_until_open(kLong));

  const auto refused = watch.sample({});
  const auto given = watch.sample({});

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what, "scripted");
  EXPECT_TRUE(given);
}

TEST(GpuWatch, SaysWhyThereIsNone) {
  GpuWatch::Options options;
  options.open = []() -> Result<std::unique_ptr<GpuSource>> {
    return Error{Errc::kUnsupported, "no driver"};
  };
  GpuWatch watch(std::move(options));

  const auto problem = watch.wait_until_open(kLong);

  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->what, "no driver");
  EXPECT_FALSE(watch.is_starting());
  EXPECT_EQ(watch.sample({}).error().code, Errc::kUnsupported);
}

TEST(GpuWatch, DoesNotWaitForADriverThatNeverStarts) {
  const auto gate = std::make_shared<Gate>();
  gate->close();
  GpuWatch::Options options;
  options.open = [gate]() -> Result<std::unique_ptr<GpuSource>> {
    gate->pass();
    return Error{Errc::kUnsupported, "at last"};
  };
  {
    GpuWatch watch(std::move(options));

    const auto problem = watch.wait_until_open(kMoment);

    ASSERT_TRUE(problem);
    EXPECT_EQ(problem->code, Errc::kIo);
    EXPECT_TRUE(watch.is_starting());
    EXPECT_TRUE(watch.sample({})->empty());
  }
  EXPECT_TRUE(GpuWatch::left_a_thread_behind());

  gate->open();

  while (GpuWatch::left_a_thread_behind()) {
    std::this_thread::yield();
  }
}

}  // namespace
}  // namespace tidemark::monitor
