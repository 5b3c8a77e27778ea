// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "profiler/tracer/trace_store.h"
#include "tests/support/temp_tree.h"

namespace tidemark::tracer {

// A trace file in a private folder.
class StoreFolder {
 public:
  explicit StoreFolder(std::uint64_t most_bytes = 0) {
    EXPECT_TRUE(store().create(folder_.path().c_str(), most_bytes));
    EXPECT_TRUE(store().publish());
  }
  ~StoreFolder() { store().abandon(true); }
  StoreFolder(const StoreFolder&) = delete;
  StoreFolder& operator=(const StoreFolder&) = delete;

  TraceStore& store() { return *store_; }
  const wire::Losses& losses() { return store_->header()->losses; }
  const tests::TempTree& folder() const { return folder_; }

 private:
  tests::TempTree folder_;
  std::unique_ptr<TraceStore> store_ = std::make_unique<TraceStore>();
};

}  // namespace tidemark::tracer
