// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/target_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark::inject {
namespace {

using testing::HasSubstr;
using testing::Not;

TraceRights rights_of_user(std::uint64_t own_uid) {
  TraceRights rights;
  rights.pid = 4711;
  rights.uids = {1000, 1000, 1000, 1000};
  rights.own_uid = own_uid;
  return rights;
}

TEST(TraceDenial, NamesTheOtherUser) {
  const Denial denial = explain_denial(rights_of_user(1001));

  EXPECT_EQ(denial.why, "process 4711 belongs to user 1000, not to user 1001");
  EXPECT_THAT(denial.hint, HasSubstr("sudo"));
}

TEST(TraceDenial, NamesYama) {
  TraceRights rights = rights_of_user(1000);
  rights.yama_scope = 1;
  const Denial own_children = explain_denial(rights);
  rights.yama_scope = 2;
  const Denial only_root = explain_denial(rights);
  rights.yama_scope = 3;
  const Denial nobody = explain_denial(rights);

  EXPECT_THAT(own_children.why, HasSubstr("only what it has started itself"));
  EXPECT_THAT(own_children.why, HasSubstr("kernel.yama.ptrace_scope is 1"));
  EXPECT_THAT(own_children.hint, HasSubstr("sudo, or start the job below it"));
  EXPECT_THAT(only_root.why, HasSubstr("may trace no other"));
  EXPECT_THAT(nobody.why, HasSubstr("no process may be traced"));
  EXPECT_THAT(nobody.hint, Not(HasSubstr("sudo")));
}

TEST(TraceDenial, NamesTheCapabilityThatAContainerLacks) {
  const Denial denial = explain_denial(rights_of_user(0));

  EXPECT_THAT(denial.why, HasSubstr("SYS_PTRACE"));
  EXPECT_THAT(denial.hint, HasSubstr("--cap-add SYS_PTRACE"));
}

TEST(TraceDenial, SaysThatItMayBeSomethingElse) {
  TraceRights root = rights_of_user(0);
  root.may_trace_all = true;

  EXPECT_THAT(explain_denial(root).why, HasSubstr("security module"));
  EXPECT_THAT(explain_denial(root).hint, Not(HasSubstr("sudo")));
  EXPECT_THAT(explain_denial(rights_of_user(1000)).hint, HasSubstr("sudo"));
}

}  // namespace
}  // namespace tidemark::inject
