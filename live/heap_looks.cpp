// SPDX-License-Identifier: Apache-2.0
#include "live/heap_looks.h"

#include <fcntl.h>
#include <malloc.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "common/fd.h"
#include "common/quiet_thread.h"
#include "recording/files.h"

namespace tidemark::live {
namespace {

// A file under a temporary name, open for writing.
struct OpenExport {
  recording::PendingFile file;
  Fd fd;
  Status written = ok();
};

Result<OpenExport> open_export(const std::string& path, bool replace) {
  TIDEMARK_TRY_ASSIGN(auto file, recording::PendingFile::create(path, replace));
  Fd fd(::open(file.temporary_path().c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) {
    return system_error(fmt::format("cannot write {}", path), errno);
  }
  return OpenExport{std::move(file), std::move(fd)};
}

Status publish(OpenExport& file) {
  TIDEMARK_TRY(file.written);
  const bool has_content = ::lseek(file.fd.get(), 0, SEEK_CUR) > 0;
  file.fd.reset();
  if (!has_content) {
    return Error{
        Errc::kNotFound,
        fmt::format("{} was not written: the last look found nothing for it", file.file.path())};
  }
  return file.file.publish();
}

bool has_look_at(const HeapFacts& facts, const ProcessKey& key) {
  return std::any_of(facts.looks.begin(), facts.looks.end(),
                     [&](const HeapFacts::OfProcess& of) { return of.look.key == key; });
}

void append_heap(HeapFacts& to, HeapFacts from) {
  to.owners.insert(to.owners.end(), std::make_move_iterator(from.owners.begin()),
                   std::make_move_iterator(from.owners.end()));
  to.looks.insert(to.looks.end(), std::make_move_iterator(from.looks.begin()),
                  std::make_move_iterator(from.looks.end()));
}

}  // namespace

MakeLook make_heap_looks(const heap::HeapOptions& options) {
  // What a look needs is large, grows, and is soon freed. Left alone, glibc raises this limit to
  // the largest block that was freed, and what was freed stays in between: a quarter of the budget.
  constexpr int kMappedFromBytes = 1 << 20;
  (void)::mallopt(M_MMAP_THRESHOLD, kMappedFromBytes);  // it may stay as it is
  return [options](const ProcessKey& key, std::function<bool()> is_cancelled) -> LookAtHeap {
    const auto watch = std::make_shared<heap::HeapWatch>(key, options, std::move(is_cancelled));
    return
        [watch](double t_s, const heap::HeapExports& exports) { return watch->look(t_s, exports); };
  };
}

HeapLookThread::~HeapLookThread() { cancel(); }

void HeapLookThread::begin(Round round) {
  {
    const std::lock_guard lock(mutex_);
    if (is_cancelled_) {
      return;
    }
    round_ = std::move(round);
    is_busy_ = true;
    begun_ns_ = clock_.monotonic_ns();
  }
  if (!thread_.joinable()) {
    thread_ = start_quiet_thread([this] { run(); });
  }
  wake_.notify_one();
}

bool HeapLookThread::is_busy() const {
  const std::lock_guard lock(mutex_);
  return is_busy_;
}

// A tick has one look at a process at most; the next one waits for the next tick.
HeapLookThread::News HeapLookThread::take() {
  const std::lock_guard lock(mutex_);
  News news = std::exchange(news_, {});
  while (!waiting_.empty()) {
    const HeapFacts& next = waiting_.front();
    const bool has_one = std::any_of(
        next.looks.begin(), next.looks.end(),
        [&](const HeapFacts::OfProcess& of) { return has_look_at(news.facts, of.look.key); });
    if (has_one) {
      break;
    }
    append_heap(news.facts, std::move(waiting_.front()));
    waiting_.erase(waiting_.begin());
  }
  return news;
}

void HeapLookThread::give_up() {
  {
    const std::lock_guard lock(mutex_);
    is_cancelled_ = true;
  }
  wake_.notify_one();
}

void HeapLookThread::cancel() {
  give_up();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void HeapLookThread::run() {
  while (true) {
    Round round;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return is_cancelled_ || round_.has_value(); });
      if (is_cancelled_) {
        is_busy_ = false;
        return;
      }
      round = *std::exchange(round_, std::nullopt);
    }
    for (std::size_t i = 0; i < round.targets.size(); ++i) {
      if (i == 0 && round.exports) {
        look_and_export(round.targets[i], round);
      } else {
        look_at(round.targets[i], round, {});
      }
    }
    const std::lock_guard lock(mutex_);
    is_busy_ = round_.has_value();
  }
}

void HeapLookThread::look_at(const Target& target, const Round& round,
                             const heap::HeapExports& exports) {
  double t_s = round.t_s;
  {
    const std::lock_guard lock(mutex_);
    if (is_cancelled_) {
      return;
    }
    t_s += to_seconds(clock_.monotonic_ns() - begun_ns_);
  }
  auto look = looks_.find(target.key);
  if (look == looks_.end()) {
    const auto is_cancelled = [this] {
      const std::lock_guard lock(mutex_);
      return is_cancelled_;
    };
    look = looks_.emplace(target.key, make_(target.key, is_cancelled)).first;
  }
  auto facts = look->second(t_s, exports);
  const std::lock_guard lock(mutex_);
  if (!facts) {
    news_.failures.push_back({target.key, facts.error()});
    return;
  }
  if (is_cancelled_) {
    return;  // it was given up, and is a part of a look
  }
  for (HeapFacts::OfProcess& of : facts->looks) {
    of.look.step = round.step;
    of.look.footprint_bytes = target.footprint_bytes;
  }
  waiting_.push_back(std::move(*facts));
}

// The files appear when they are complete.
void HeapLookThread::look_and_export(const Target& target, const Round& round) {
  std::vector<OpenExport> files;
  std::vector<std::string> problems;
  heap::HeapExports exports;
  exports.dot_path = round.exports->dot_owner;
  for (const auto& [path, fd] : {std::pair(&round.exports->heapsnapshot, &exports.heapsnapshot),
                                 std::pair(&round.exports->dot, &exports.dot)}) {
    if (path->empty()) {
      continue;
    }
    auto file = open_export(*path, round.exports->replace);
    if (file) {
      *fd = file->fd.get();
      files.push_back(std::move(*file));
    } else {
      problems.push_back(file.error().what);
    }
  }
  exports.on_error = [&](int fd, const Error& error) {
    for (OpenExport& file : files) {
      if (file.fd.get() == fd) {
        file.written = Error{error.code, fmt::format("{}: {}", file.file.path(), error.what)};
      }
    }
  };
  look_at(target, round, exports);
  for (OpenExport& file : files) {
    if (const Status published = publish(file); !published) {
      problems.push_back(published.error().what);
    }
  }
  const std::lock_guard lock(mutex_);
  news_.problems.insert(news_.problems.end(), problems.begin(), problems.end());
}

}  // namespace tidemark::live
