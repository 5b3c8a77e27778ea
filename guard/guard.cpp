// SPDX-License-Identifier: Apache-2.0
#include "guard/guard.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "common/exit_code.h"
#include "common/messages.h"
#include "common/text.h"
#include "common/units.h"
#include "guard/guard_text.h"
#include "guard/guard_watch.h"
#include "guard/tree_killer.h"
#include "live/watch.h"
#include "monitor/procfs/launch_mark.h"

namespace tidemark::guard {
namespace {

constexpr std::int64_t kLongestLeftoverNs = 30 * kNsPerSecond;

// A guard that would stop the job at once is a mistake of the settings. Of a command that is still
// to be started: it will be in our control group and inherit our rlimits. A job that runs is looked
// at by the GuardWatch.
Status check_headroom(const GuardOptions& options) {
  if (options.track.watch.target.command.empty()) {
    return ok();
  }
  HeadroomReader::Options wanted;
  wanted.groups_of = {::getpid()};
  wanted.keep_free = options.keep_free;
  HeadroomReader reader(wanted);
  if (const auto headroom = reader.read(nullptr); headroom && headroom->to_spare_bytes() < 0) {
    return Error{Errc::kUsage, refusal_text(*headroom, reader.limits()[headroom->limit].source)};
  }
  // What we use of ours ourselves says nothing: it is only too low when all of it is to be kept.
  wanted.resources_of = {::getpid()};
  const HeadroomReader inherited(wanted);
  for (const WatchedLimit& limit : inherited.limits()) {
    const std::uint64_t keep_free = options.keep_free.of(limit.bytes);
    if (keep_free >= limit.bytes) {
      const auto all = static_cast<std::int64_t>(limit.bytes);
      return Error{Errc::kUsage, refusal_text({all, limit.bytes, keep_free, 0}, limit.source)};
    }
  }
  return ok();
}

// A night must not end at its second run file.
Status check_outputs(const GuardOptions& options) {
  const live::WatchOptions& watch = options.track.watch;
  for (std::uint64_t n = 2; options.restart && !watch.force && n <= options.max_restarts + 1; ++n) {
    const std::string path = chunk_output(watch.output, n);
    std::error_code error;
    if (!path.empty() && std::filesystem::exists(path, error)) {
      return Error{Errc::kUsage,
                   fmt::format("{} exists, and is where the {}. start would be recorded; --force "
                               "replaces it",
                               escape_text(path), n)};
    }
  }
  return ok();
}

void reap() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

// What the command left behind ends before the command is started again: they would pile up.
void clear_leftovers(std::span<const ProcessKey> members, std::int64_t patience_ns,
                     ResumeHelper* resume) {
  TreeKiller::Options options;
  options.children_of = ::getpid();
  options.launch_mark = monitor::launch_mark();
  options.resume = resume;
  auto killer = TreeKiller::open(options);
  if (!killer) {
    print_error(killer.error());
    return;
  }
  const SystemClock clock;
  const std::int64_t end_ns = clock.monotonic_ns() + patience_ns;
  reap();
  std::uint32_t running = killer->count(members);
  if (running > 0) {
    print_note(fmt::format("guard: {} of the job still {}, with {} to end",
                           format_count(running, "process", "processes"),
                           plural(running, "runs", "run"),
                           format_duration(to_seconds(patience_ns))));
  }
  while (running > 0 && clock.monotonic_ns() < end_ns) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    reap();
    running = killer->count(members);
  }
  for (int i = 0; running > 0 && i < 50; ++i) {
    killer->kill(members);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    reap();
    running = killer->count(members);
  }
}

}  // namespace

Result<int> parse_signal(std::string_view text) {
  const std::string_view name = text.starts_with("SIG") ? text.substr(3) : text;
  const auto number = parse_number<int>(name);
  for (int signal = 1; signal < NSIG; ++signal) {
    const char* const known = ::sigabbrev_np(signal);
    const bool is_meant = number ? *number == signal : (known != nullptr && name == known);
    if (is_meant && signal != SIGKILL && signal != SIGSTOP) {
      return signal;
    }
  }
  return Error{Errc::kUsage,
               fmt::format("--signal is one that a program can catch, such as TERM, INT or USR1, "
                           "not '{}'",
                           escape_text(text))};
}

int run_guard(const GuardOptions& options) {
  for (const Status& checked : {check_headroom(options), check_outputs(options)}) {
    if (!checked) {
      print_error(checked.error(), "see tidemark guard --help");
      return kExitTarget;
    }
  }
  // First of all: it must have neither our threads nor our protection.
  std::optional<Notifier> notifier;
  if (!options.notify.empty() || options.desktop) {
    auto started = Notifier::start({options.notify, options.desktop});
    if (!started) {
      print_error(started.error());
      return kExitTarget;
    }
    notifier.emplace(*std::move(started));
  }
  auto resume = ResumeHelper::start();
  if (!resume) {
    print_error(resume.error());
    return kExitTarget;
  }
  const auto service = ServiceManager::from_environment();
  if (const std::string note = lock_own_memory(); !note.empty()) {
    print_note("note: " + note);
  }
  OomShield shield;
  RestartLedger restarts(options.restart && !options.dry_run, options.max_restarts);
  GuardOptions chunk = options;
  while (true) {
    chunk.track.watch.output = chunk_output(options.track.watch.output, restarts.restarts() + 1);
    chunk.track.watch.output_is_optional = restarts.restarts() > 0;  // the night goes on
    GuardWatch watching(chunk, {notifier, service, shield, restarts, &*resume});
    const int code = live::watch(chunk.track.watch, watching);
    if (!watching.restarts()) {
      service.stopping();
      return code;
    }
    clear_leftovers(watching.members(), std::min(options.settings.grace_ns, kLongestLeftoverNs),
                    &*resume);
  }
}

}  // namespace tidemark::guard
