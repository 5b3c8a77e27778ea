// SPDX-License-Identifier: Apache-2.0
#include "profiler/wire/trace_request.h"

#include <gtest/gtest.h>

namespace tidemark::wire {
namespace {

TEST(TraceRequest, IsReadInAllItsParts) {
  TraceRequest request;

  ASSERT_TRUE(parse_request("1:sampled:524288:1073741824:fu:/run/some where:odd\n", request));

  EXPECT_EQ(request.mode, Mode::kSampled);
  EXPECT_EQ(request.sample_every_bytes, 524288U);
  EXPECT_EQ(request.most_file_bytes, 1073741824U);
  EXPECT_TRUE(request.follow);
  EXPECT_TRUE(request.libunwind);
  EXPECT_STREQ(request.directory, "/run/some where:odd\n");
}

TEST(TraceRequest, FlagsMayBeAbsent) {
  TraceRequest request;

  ASSERT_TRUE(parse_request("1:dormant:0:0::/", request));

  EXPECT_EQ(request.mode, Mode::kDormant);
  EXPECT_FALSE(request.follow);
  EXPECT_FALSE(request.libunwind);
}

class BadRequest : public testing::TestWithParam<const char*> {};

TEST_P(BadRequest, IsRefused) {
  TraceRequest request;
  EXPECT_FALSE(parse_request(GetParam(), request));
}

INSTANTIATE_TEST_SUITE_P(
    , BadRequest,
    testing::Values("", "1", "1:", "2:exact:0:0::/tmp", "1:exact", "1:exact:0", "1:exact:0:0",
                    "1:exact:0:0:", "1:exact:0:0:f", "1:exact:0:0:x:/tmp", "1:exact:0:0::tmp",
                    "1:exact:0:0::", "1:exactly:0:0::/tmp", "1:exact:-1:0::/tmp",
                    "1:exact::0::/tmp", "1:exact:0: 0::/tmp", "1:sampled:0:0::/tmp",
                    "1:exact:18446744073709551616:0::/tmp",
                    "1:exact:99999999999999999999999999:0::/tmp", " 1:exact:0:0::/tmp"));

TEST(TraceRequest, TakesTheLargestNumber) {
  TraceRequest request;
  ASSERT_TRUE(parse_request("1:exact:18446744073709551615:0::/tmp", request));
  EXPECT_EQ(request.sample_every_bytes, ~std::uint64_t{0});
}

}  // namespace
}  // namespace tidemark::wire
