// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/trace_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "common/fd.h"
#include "tests/support/in_child.h"
#include "tests/unit/tracer/store_folder.h"

namespace tidemark::tracer {
namespace {

using tests::in_child;
using tests::TempTree;
using wire::Table;

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

TEST(TraceStore, PlacesLieInExtentsThatDouble) {
  for (const Table table : {Table::kStrings, Table::kNodes, Table::kLive, Table::kRanges}) {
    const std::uint64_t first = first_items(table);
    EXPECT_EQ(place_of(table, 0).extent, 0U);
    EXPECT_EQ(place_of(table, 0).position, 0U);
    EXPECT_EQ(place_of(table, first - 1).extent, 0U);
    EXPECT_EQ(place_of(table, first - 1).position, first - 1);
    EXPECT_EQ(place_of(table, first).extent, 1U);
    EXPECT_EQ(place_of(table, first).position, 0U);
    EXPECT_EQ(place_of(table, 3 * first - 1).extent, 1U);
    EXPECT_EQ(place_of(table, 3 * first - 1).position, 2 * first - 1);
    EXPECT_EQ(place_of(table, 3 * first).extent, 2U);
    EXPECT_EQ(place_of(table, 3 * first).position, 0U);
  }
}

TEST(TraceStore, ANewFileIsLaidOutAsTheExampleInTraceLayoutSays) {
  StoreFolder folder;

  std::vector<std::uint64_t> offsets;
  for (const wire::TableDirectory& table : folder.store().header()->table) {
    offsets.push_back(table.extent[0].offset);
  }

  EXPECT_EQ(offsets, (std::vector<std::uint64_t>{4096, 12288, 16384, 40960, 57344, 81920, 86016}));
  EXPECT_EQ(folder.store().header()->file_bytes, 90112U);
  EXPECT_EQ(wire::bucket_of(0x5581e0, first_items(Table::kLive), false), 82U);
  EXPECT_EQ(wire::bucket_of(0x560000, first_items(Table::kLive), false), 87U);
}

TEST(TraceStore, IsSeenUnderItsNameOnlyWhenPublished) {
  const TempTree folder;
  const auto store = std::make_unique<TraceStore>();

  ASSERT_TRUE(store->create(folder.path().c_str(), 0));
  ASSERT_EQ(files_in(folder.path()).size(), 1U);
  EXPECT_TRUE(files_in(folder.path())[0].ends_with(".trace.new"));
  ASSERT_TRUE(store->publish());

  EXPECT_TRUE(files_in(folder.path())[0].ends_with(".trace"));
  EXPECT_TRUE(files_in(folder.path())[0].starts_with(std::to_string(::getpid()) + "-"));
  store->abandon(true);
}

TEST(TraceStore, ItsFileIsForItsOwnerOnly) {
  StoreFolder folder;
  const auto name = files_in(folder.folder().path()).at(0);

  const auto allowed = std::filesystem::status(folder.folder().path(name)).permissions();

  EXPECT_EQ(static_cast<unsigned>(allowed), 0600U);
}

TEST(TraceStore, HandsOutItemsAndGrows) {
  StoreFolder folder;
  TraceStore& store = folder.store();

  for (std::uint64_t i = 0; i < 20 * first_items(Table::kSites); ++i) {
    std::uint64_t index = 0;
    ASSERT_TRUE(store.take(Table::kSites, 1, index));
    ASSERT_EQ(index, i);
    store.item<wire::Site>(Table::kSites, index)->node = static_cast<std::uint32_t>(i);
  }

  EXPECT_EQ(store.extents(Table::kSites), 5U);
  EXPECT_EQ(store.header()->table[static_cast<std::size_t>(Table::kSites)].extents.load(), 5U);
  const auto name = files_in(folder.folder().path()).at(0);
  EXPECT_EQ(std::filesystem::file_size(folder.folder().path(name)), store.header()->file_bytes);
}

// An extent is twice as large as the one before it.
TEST(TraceStore, TakesMemoryForWhatIsUsedOfAnExtent) {
  constexpr std::uint64_t kNodes = 140'000;  // a little more than fits into seven extents
  constexpr std::uint64_t kPart = 1U << 20U;
  StoreFolder folder;
  TraceStore& store = folder.store();
  const auto name = folder.folder().path(files_in(folder.folder().path()).at(0));

  std::uint64_t index = 0;
  for (std::uint64_t i = 0; i < kNodes; ++i) {
    ASSERT_TRUE(store.take(Table::kNodes, 1, index));
    ASSERT_EQ(index, i);
    store.item<wire::StackNode>(Table::kNodes, index)->value = i;
  }

  struct stat status {};
  ASSERT_EQ(::stat(name.c_str(), &status), 0);
  EXPECT_EQ(static_cast<std::uint64_t>(status.st_size), store.header()->file_bytes);
  EXPECT_GE(store.header()->file_bytes, 2 * kNodes * sizeof(wire::StackNode) * 4 / 5);
  EXPECT_LT(static_cast<std::uint64_t>(status.st_blocks) * 512,
            kNodes * sizeof(wire::StackNode) + kPart + (256U << 10U));
  EXPECT_EQ(store.item<wire::StackNode>(Table::kNodes, store.room(Table::kNodes)), nullptr);
  EXPECT_LT(store.room(Table::kNodes), items_in(Table::kNodes, store.extents(Table::kNodes)));
}

TEST(TraceStore, HasItsExtentsToTheirEndsOnceItMakesNoSystemCalls) {
  const TempTree folder;

  const std::string said = in_child([&] {
    static TraceStore store;
    if (!store.create(folder.path().c_str(), 0)) {
      return std::string("no file");
    }
    std::uint64_t index = 0;
    while (store.extents(Table::kNodes) < 8) {
      store.take(Table::kNodes, 1, index);
    }
    store.stop_system_calls();
    while (store.take(Table::kNodes, 1, index)) {
      store.item<wire::StackNode>(Table::kNodes, index)->value = 1;
    }
    return std::to_string(index);
  });

  EXPECT_EQ(said, std::to_string(items_in(Table::kNodes, 9)));
}

TEST(TraceStore, SeveralItemsLieInOneExtent) {
  StoreFolder folder;
  TraceStore& store = folder.store();

  for (int i = 0; i < 40; ++i) {
    std::uint64_t index = 0;
    ASSERT_TRUE(store.take(Table::kStrings, 3000, index));
    ASSERT_EQ(place_of(Table::kStrings, index).extent,
              place_of(Table::kStrings, index + 2999).extent);
    std::memset(store.item<char>(Table::kStrings, index), 'x', 3000);
  }
}

TEST(TraceStore, ThreadsNeverGetTheSameItem) {
  StoreFolder folder;
  constexpr std::size_t kEach = 3000;
  std::vector<std::uint64_t> taken[4];

  std::vector<std::thread> threads;
  for (auto& mine : taken) {
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < kEach; ++i) {
        std::uint64_t index = 0;
        if (folder.store().take(Table::kNodes, 1, index)) {
          ++folder.store().item<wire::StackNode>(Table::kNodes, index)->value;
          mine.push_back(index);
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }

  std::size_t all = 0;
  for (const auto& mine : taken) {
    all += mine.size();
    for (const std::uint64_t index : mine) {
      ASSERT_EQ(folder.store().item<wire::StackNode>(Table::kNodes, index)->value, 1U);
    }
  }
  EXPECT_EQ(all, 4 * kEach);
}

TEST(TraceStore, DoesNotGrowBeyondItsLimit) {
  StoreFolder folder(200U << 10U);
  std::uint64_t index = 0;
  bool took = true;

  for (int i = 0; i < 100'000 && took; ++i) {
    took = folder.store().take(Table::kNodes, 1, index);
  }

  EXPECT_FALSE(took);
  EXPECT_LE(folder.store().header()->file_bytes, 200U << 10U);
  EXPECT_EQ(folder.losses().extend_failures, 1U);
  EXPECT_EQ(folder.store().header()->extend_errno, static_cast<std::uint32_t>(EDQUOT));
  // What is full stays full; other tables are as they were.
  EXPECT_FALSE(folder.store().take(Table::kNodes, 1, index));
  EXPECT_EQ(folder.store().item<wire::StackNode>(Table::kNodes, index), nullptr);
  EXPECT_TRUE(folder.store().take(Table::kSites, 1, index));
}

// A million requests failed: the file is no larger for them.
TEST(TraceStore, ContinuesWithoutAGapWhenThereIsRoomAgain) {
  StoreFolder folder(200U << 10U);
  TraceStore& store = folder.store();
  std::uint64_t index = 0;
  std::uint64_t taken = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    taken += store.take(Table::kNodes, 1, index) ? 1U : 0U;
  }
  const std::size_t extents = store.extents(Table::kNodes);
  EXPECT_EQ(store.used(Table::kNodes), taken);

  store.header()->control.most_file_bytes = 0;
  for (int i = 0; i < 1000 && !store.take(Table::kNodes, 1, index); ++i) {
    ::usleep(10'000);  // it does not ask again at once
  }

  EXPECT_EQ(index, taken);
  EXPECT_EQ(store.used(Table::kNodes), taken + 1);
  EXPECT_EQ(store.extents(Table::kNodes), extents + 1);
}

TEST(TraceStore, ACountThatWasNeverHandedOutIsRejected) {
  for (const std::uint64_t used : {~std::uint64_t{0}, std::uint64_t{1} << 40U}) {
    StoreFolder folder;
    const std::uint64_t before = folder.store().header()->file_bytes;
    folder.store().header()->table[static_cast<std::size_t>(Table::kNodes)].used = used;

    std::uint64_t index = 0;
    EXPECT_FALSE(folder.store().take(Table::kNodes, 128, index));
    EXPECT_EQ(folder.store().header()->file_bytes, before);
  }
}

TEST(TraceStore, ALimitBelowTheFirstExtentsIsAnError) {
  const TempTree folder;
  const auto store = std::make_unique<TraceStore>();

  EXPECT_FALSE(store->create(folder.path().c_str(), 8192));

  EXPECT_EQ(store->error(), EDQUOT);
  EXPECT_TRUE(files_in(folder.path()).empty());
  EXPECT_EQ(store->header(), nullptr);
}

// Children use nothing of the test framework: they return a word that says what went wrong.
std::string grow_until_it_fails(const char* folder) {
  static TraceStore store;
  if (!store.create(folder, 0)) {
    return "no file " + std::to_string(store.error());
  }
  store.publish();
  std::uint64_t index = 0;
  for (int i = 0; i < 10'000'000; ++i) {
    if (!store.take(Table::kSites, 1, index)) {
      return "full " + std::to_string(store.error());
    }
    store.item<wire::Site>(Table::kSites, index)->node = 1;
  }
  return "endless";
}

TEST(TraceStore, AFileSizeLimitBringsNoSignal) {
  const TempTree folder;

  const std::string said = in_child([&] {
    const rlimit most = {1U << 20U, 1U << 20U};
    ::setrlimit(RLIMIT_FSIZE, &most);
    return grow_until_it_fails(folder.path().c_str());
  });

  EXPECT_EQ(said, "full " + std::to_string(EFBIG));
}

TEST(TraceStore, AFileSizeLimitOfNothingMeansNoFile) {
  const TempTree folder;

  const std::string said = in_child([&] {
    const rlimit most = {100, 100};
    ::setrlimit(RLIMIT_FSIZE, &most);
    return grow_until_it_fails(folder.path().c_str());
  });

  EXPECT_EQ(said, "no file " + std::to_string(EFBIG));
  EXPECT_TRUE(files_in(folder.path()).empty());
}

TEST(TraceStore, AFullFileSystemBringsNoSignal) {
  const TempTree folder;

  const std::string said = in_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", folder.path().c_str(), "tmpfs", 0, "size=1m") != 0) {
      return std::string("cannot mount");
    }
    return grow_until_it_fails(folder.path().c_str());
  });

  if (said == "cannot mount") {
    GTEST_SKIP() << "may not mount a file system here";
  }
  EXPECT_EQ(said, "full " + std::to_string(ENOSPC));
}

TEST(TraceStore, ADeletedFileIsNotExtended) {
  StoreFolder folder;
  std::filesystem::remove_all(folder.folder().path());

  EXPECT_FALSE(folder.store().make_room(Table::kSites, first_items(Table::kSites)));

  EXPECT_EQ(folder.store().header()->extend_errno, static_cast<std::uint32_t>(ENOENT));
  std::uint64_t index = 0;
  EXPECT_TRUE(folder.store().take(Table::kSites, 1, index));  // what is mapped stays usable
}

TEST(TraceStore, AnotherFileUnderItsNameIsNotTouched) {
  StoreFolder folder;
  const auto name = files_in(folder.folder().path()).at(0);
  folder.folder().remove(name);
  folder.folder().write(name, "mine");

  EXPECT_FALSE(folder.store().make_room(Table::kSites, first_items(Table::kSites)));

  EXPECT_EQ(folder.store().header()->extend_errno, static_cast<std::uint32_t>(ESTALE));
  EXPECT_EQ(std::filesystem::file_size(folder.folder().path(name)), 4U);
}

// The descriptors of this process that are open for a file.
std::vector<int> descriptors_of(const std::string& path) {
  std::vector<int> found;
  for (const auto& name : files_in("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink("/proc/self/fd/" + name, gone) == path) {
      found.push_back(std::stoi(name));
    }
  }
  return found;
}

TEST(TraceStore, GrowsWhenItsPathCannotBeOpened) {
  StoreFolder folder;
  const auto name = files_in(folder.folder().path()).at(0);
  std::filesystem::rename(folder.folder().path(name), folder.folder().path("elsewhere"));

  EXPECT_TRUE(folder.store().make_room(Table::kSites, first_items(Table::kSites)));

  EXPECT_EQ(std::filesystem::file_size(folder.folder().path("elsewhere")),
            folder.store().header()->file_bytes);
}

TEST(TraceStore, KeepsOneDescriptorFarFromThoseOfTheProgramAndClosesIt) {
  std::string path;
  {
    StoreFolder folder;
    path = folder.folder().path(files_in(folder.folder().path()).at(0));
    const auto kept = descriptors_of(path);

    ASSERT_EQ(kept.size(), 1U);
    EXPECT_GT(kept[0], 200);
    EXPECT_NE(::fcntl(kept[0], F_GETFD) & FD_CLOEXEC, 0);
    folder.store().abandon(true);
    EXPECT_TRUE(descriptors_of(path).empty());
    ASSERT_TRUE(folder.store().create(folder.folder().path().c_str(), 0));
  }
}

TEST(TraceStore, AProgramMayCloseItsDescriptorAndUseTheNumber) {
  StoreFolder folder;
  const auto kept = descriptors_of(folder.folder().path(files_in(folder.folder().path()).at(0)));
  ASSERT_EQ(kept.size(), 1U);
  folder.folder().write("mine", "mine");
  const int mine = ::open(folder.folder().path("mine").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::dup3(mine, kept[0], O_CLOEXEC), kept[0]);

  EXPECT_TRUE(folder.store().make_room(Table::kSites, first_items(Table::kSites)));
  folder.store().abandon(true);

  EXPECT_EQ(std::filesystem::file_size(folder.folder().path("mine")), 4U);
  EXPECT_NE(::fcntl(kept[0], F_GETFD), -1);  // still the program's
  ::close(kept[0]);
  ::close(mine);
  ASSERT_TRUE(folder.store().create(folder.folder().path().c_str(), 0));
}

TEST(TraceStore, AProgramWithoutDescriptorsIsTracedWithWhatFitsAtFirst) {
  const TempTree folder;

  const std::string said = in_child([&] {
    static TraceStore store;
    if (!store.create(folder.path().c_str(), 0) || !store.publish()) {
      return std::string("no file");
    }
    for (const int kept : descriptors_of(folder.path(files_in(folder.path()).at(0)))) {
      ::close(kept);
    }
    const rlimit none = {0, 0};
    ::setrlimit(RLIMIT_NOFILE, &none);
    std::uint64_t index = 0;
    while (store.take(Table::kSites, 1, index)) {
    }
    return std::to_string(index) + " error " + std::to_string(store.error());
  });

  EXPECT_EQ(said, std::to_string(first_items(Table::kSites)) + " error " + std::to_string(EMFILE));
}

TEST(TraceStore, SoonRetriesAfterAFailure) {
  StoreFolder folder;
  std::filesystem::remove_all(folder.folder().path());

  EXPECT_FALSE(folder.store().make_room(Table::kSites, first_items(Table::kSites)));
  EXPECT_FALSE(folder.store().make_room(Table::kSites, first_items(Table::kSites)));  // not so soon
  EXPECT_EQ(folder.losses().extend_failures, 1U);
  ::usleep(3000);
  EXPECT_FALSE(folder.store().make_room(Table::kSites, first_items(Table::kSites)));
  EXPECT_EQ(folder.losses().extend_failures, 2U);
}

// In a folder that belongs to a run, which holds its lock until it is killed.
class FolderOfARun {
 public:
  FolderOfARun() {
    folder_.write(wire::kOwnerLock, "");
    lock_ = Fd(::open(folder_.path(wire::kOwnerLock).c_str(), O_RDWR | O_CLOEXEC));
    EXPECT_EQ(::flock(lock_.get(), LOCK_EX | LOCK_NB), 0);
  }
  const char* path() const { return folder_.path().c_str(); }
  void kill_run() { lock_.reset(); }
  std::size_t traces() const { return files_in(folder_.path()).size() - 1; }

 private:
  TempTree folder_;
  Fd lock_;
};

TEST(TraceStore, HasAFileWhileItsRunIsAlive) {
  const FolderOfARun folder;
  const auto store = std::make_unique<TraceStore>();

  EXPECT_EQ(check_trace_folder(folder.path()), 0);
  EXPECT_TRUE(store->create(folder.path(), 0));

  EXPECT_TRUE(store->make_room(Table::kSites, first_items(Table::kSites)));
  EXPECT_EQ(folder.traces(), 1U);
  store->abandon(true);
}

TEST(TraceStore, HasNoFileWhenItsRunWasKilled) {
  FolderOfARun folder;
  const auto store = std::make_unique<TraceStore>();
  folder.kill_run();

  EXPECT_FALSE(store->create(folder.path(), 0));

  EXPECT_EQ(store->error(), EOWNERDEAD);
  EXPECT_EQ(folder.traces(), 0U);
}

TEST(TraceStore, GrowsNoMoreAndRecordsNothingOnceItsRunWasKilled) {
  FolderOfARun folder;
  const auto store = std::make_unique<TraceStore>();
  ASSERT_TRUE(store->create(folder.path(), 0));
  store->header()->control.mode.store(static_cast<std::uint32_t>(wire::Mode::kExact));
  const std::uint64_t bytes = store->header()->file_bytes;
  folder.kill_run();

  EXPECT_FALSE(store->make_room(Table::kSites, first_items(Table::kSites)));

  EXPECT_EQ(store->header()->extend_errno, static_cast<std::uint32_t>(EOWNERDEAD));
  EXPECT_EQ(store->header()->file_bytes, bytes);
  EXPECT_EQ(store->header()->control.mode, static_cast<std::uint32_t>(wire::Mode::kDormant));
  store->abandon(true);
}

// A program may look at all descriptors that it can have.
TEST(TraceStore, KeepsNoDescriptorWhereThereAreFew) {
  const TempTree folder;

  const std::string said = in_child([&] {
    static TraceStore store;
    const rlimit few = {29, 29};
    ::setrlimit(RLIMIT_NOFILE, &few);
    if (!store.create(folder.path().c_str(), 0) || !store.publish()) {
      return std::string("no file");
    }
    const auto kept = descriptors_of(folder.path(files_in(folder.path()).at(0)));
    return std::to_string(kept.size()) +
           (store.make_room(Table::kSites, first_items(Table::kSites)) ? " grows" : " full");
  });

  EXPECT_EQ(said, "0 grows");
}

TEST(TraceStore, AFolderThatIsNotThereIsAnError) {
  const auto store = std::make_unique<TraceStore>();

  EXPECT_FALSE(store->create("/nonexistent/folder", 0));
  EXPECT_EQ(store->error(), ENOENT);
}

TEST(TraceStore, APathThatIsTooLongIsAnError) {
  const auto store = std::make_unique<TraceStore>();

  EXPECT_FALSE(store->create(("/" + std::string(5000, 'x')).c_str(), 0));
  EXPECT_EQ(store->error(), ENAMETOOLONG);
}

TEST(TraceStore, CanBeCreatedAgainAfterItWasAbandoned) {
  StoreFolder folder;
  std::uint64_t index = 0;
  folder.store().take(Table::kSites, 1000, index);

  folder.store().abandon(true);

  EXPECT_EQ(folder.store().header(), nullptr);
  EXPECT_EQ(folder.store().extents(Table::kSites), 0U);
  ASSERT_TRUE(folder.store().create(folder.folder().path().c_str(), 0));
  ASSERT_TRUE(folder.store().take(Table::kSites, 1, index));
  EXPECT_EQ(index, 0U);
}

}  // namespace
}  // namespace tidemark::tracer
