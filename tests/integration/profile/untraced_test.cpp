// SPDX-License-Identifier: Apache-2.0
// `tidemark profile` of jobs whose memory grows where the tracer is not.
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/integration/monitor/command_output.h"
#include "tests/support/temp_tree.h"

namespace tidemark {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using tests::Output;
using tests::run_tool;
using tests::TempTree;
using tests::victim_path;

namespace fs = std::filesystem;

constexpr double kMiB = 1024.0 * 1024.0;
// 100 steps of 256 KiB, of which the first samples may miss some.
constexpr double kLeastSeen = 12.0 * kMiB;

// Words that the report breaks its lines at, put together again.
std::string in_one_line(std::string text) {
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos;) {
    std::size_t end = text.find_first_not_of("\n ", at);
    end = end == std::string::npos ? text.size() : end;
    text.replace(at, end - at, " ");
  }
  return text;
}

Output profile(const std::vector<std::string>& options, const std::vector<std::string>& command) {
  std::vector<std::string> arguments = {"profile", "--interval", "100ms", "--mode", "exact"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.emplace_back("--");
  arguments.insert(arguments.end(), command.begin(), command.end());
  return run_tool(arguments);
}

// A shell that is traced starts the command, and waits for it.
std::vector<std::string> from_a_shell(const std::string& program) {
  return {"/bin/sh", "-c", "\"$0\"; exit $?", program};
}

TEST(UntracedProcess, ThatGrowsIsNamedWithTheReason) {
  const TempTree dir;
  const std::string file = dir.path("run.tidemark");

  const Output live = profile({"-o", file}, from_a_shell(victim_path("leak_static")));
  const Output again = run_tool({"profile", file});

  EXPECT_EQ(live.exit_code, 7) << live.err;  // the command's own
  EXPECT_EQ(again.exit_code, 4) << again.out;
  for (const std::string& text : {in_one_line(live.err), in_one_line(again.out)}) {
    EXPECT_THAT(text, HasSubstr("NOT SEEN: "));
    EXPECT_THAT(text, HasSubstr("(leak_static) grew by"));
    EXPECT_THAT(text, HasSubstr("and was not traced, because it is statically linked."));
    EXPECT_THAT(text, Not(HasSubstr("NOTHING GROWS")));
  }
}

TEST(UntracedProcess, IsInTheJson) {
  const Output output = profile({"--json"}, from_a_shell(victim_path("leak_static")));

  const json report = json::parse(output.out);
  const json& untraced = report.at("target").at("untraced");
  ASSERT_EQ(untraced.size(), 1U) << untraced.dump(1);
  EXPECT_EQ(untraced[0].at("comm"), "leak_static");
  EXPECT_EQ(untraced[0].at("reason"), "static");
  EXPECT_EQ(untraced[0].at("keeps_growing"), true);
  EXPECT_GT(untraced[0].at("growth_bytes").get<double>(), kLeastSeen);
}

TEST(UntracedProcess, IsNamedAlsoWhereNothingWasTraced) {
  const Output output = profile({}, {victim_path("leak_static")});

  EXPECT_EQ(output.exit_code, 7);
  EXPECT_THAT(in_one_line(output.err), HasSubstr("because it is statically linked."));
}

TEST(UntracedProcess, MayBeLeftAloneByTheUser) {
  const Output output =
      profile({"--json", "--no-follow"}, from_a_shell(victim_path("leak_by_line")));

  const json report = json::parse(output.out);
  const json& untraced = report.at("target").at("untraced");
  ASSERT_EQ(untraced.size(), 1U) << untraced.dump(1);
  EXPECT_EQ(untraced[0].at("reason"), "not_followed");
}

// A program with what it needs, and nothing else.
TEST(UntracedProcess, MayHaveARootFolderWithoutTheTracer) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can chroot";
  }
  const TempTree root;
  const std::string program = victim_path("leak_by_line");
  tests::Subprocess ldd({"ldd", program});
  ASSERT_EQ(ldd.wait(), 0) << ldd.errors();
  const std::string libraries = ldd.output();
  std::error_code error;
  for (std::size_t at = 0; (at = libraries.find('/', at)) != std::string::npos;) {
    const std::size_t end = libraries.find_first_of(" \n", at);
    const std::string path = libraries.substr(at, end - at);
    fs::create_directories(fs::path(root.path() + path).parent_path(), error);
    fs::copy_file(fs::canonical(path), root.path() + path, error);
    at = end;
  }
  fs::copy_file(program, root.path("job"), error);
  ASSERT_FALSE(error) << error.message();

  const Output output = profile({"--json"}, {"chroot", root.path(), "/job"});

  if (output.exit_code == 125) {
    GTEST_SKIP() << "may not chroot here";
  }
  const json report = json::parse(output.out);
  const json& untraced = report.at("target").at("untraced");
  ASSERT_EQ(untraced.size(), 1U) << report.at("target").dump(1);
  EXPECT_EQ(untraced[0].at("reason"), "out_of_reach");
  EXPECT_GT(untraced[0].at("growth_bytes").get<double>(), kLeastSeen);
}

TEST(UntracedProcess, MayRunAsAnotherUser) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can become another user";
  }
  const TempTree folder;  // where that user can reach the program
  const fs::path job = folder.path("job");
  fs::copy_file(victim_path("leak_by_line"), job);
  constexpr fs::perms kForAll = static_cast<fs::perms>(0755);
  fs::permissions(folder.path(), kForAll);
  fs::permissions(job, kForAll);
  const std::vector<std::string> as_nobody = {"su", "nobody", "-s", "/bin/sh", "-c"};
  const auto with = [&](std::string command) {
    std::vector<std::string> all = as_nobody;
    all.push_back(std::move(command));
    return all;
  };
  tests::Subprocess attempt(with("test -x " + job.string()));
  if (attempt.wait() != 0) {
    GTEST_SKIP() << "may not become another user here";
  }

  const Output text = profile({}, with(job.string()));
  const Output output = profile({"--json"}, with(job.string()));

  EXPECT_EQ(text.exit_code, 7) << text.err;  // the command's own
  EXPECT_THAT(in_one_line(text.err), HasSubstr("(job) grew by"));
  EXPECT_THAT(in_one_line(text.err), HasSubstr("not traced, because it runs as another user."));
  EXPECT_THAT(text.err, Not(HasSubstr("NOTHING GROWS")));
  const json report = json::parse(output.out);
  const json& untraced = report.at("target").at("untraced");
  ASSERT_EQ(untraced.size(), 1U) << report.at("target").dump(1);
  EXPECT_EQ(untraced[0].at("reason"), "other_user");
  EXPECT_GT(untraced[0].at("growth_bytes").get<double>(), kLeastSeen);
}

TEST(TracedProcess, LivesOnWhenItsMainThreadHasEnded) {
  const Output output = profile({"--json"}, {victim_path("leader_exits")});

  EXPECT_EQ(output.exit_code, 3) << output.err;
  const json report = json::parse(output.out);
  const json& site = report.at("sites").at(0);
  EXPECT_NEAR(site.at("live_bytes").get<double>(), 25.0 * kMiB, 1.0) << site.dump(1);
  EXPECT_EQ(report.at("target").at("traced"), 1);
  EXPECT_TRUE(report.at("target").at("untraced").empty()) << report.at("target").dump(1);
  // Its mappings are those of a thread that lives.
  const json& now = report.at("target").at("processes").at(0).at("now");
  EXPECT_TRUE(now.at("slack_bytes").is_number()) << now.dump(1);
}

}  // namespace
}  // namespace tidemark
