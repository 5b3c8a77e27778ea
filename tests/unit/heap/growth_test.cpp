// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/growth.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/heap/made_up_objects.h"

namespace tidemark::heap {
namespace {

using testing::IsEmpty;
using testing::SizeIs;
using tests::MadeUpObjects;
using Address = MadeUpObjects::Address;

constexpr std::uint64_t kPayload = 100'000;

// Looks at what a test makes up, ten seconds apart.
class Looks {
 public:
  HeapGrowth look() {
    const ObjectGraph graph(objects, objects.roots, {});
    ObjectPaths paths(graph);
    t_s_ += 10;
    return finder_.compare(graph, paths, t_s_);
  }

  Address payload() { return objects.add("Sample", ObjectKind::kOther, kPayload); }
  // Adds so many new ones.
  void fill(Address list, int count) {
    for (int i = 0; i < count; ++i) {
      objects.item(list, payload());
    }
  }

  MadeUpObjects objects;
  const Address main = objects.module("__main__");

 private:
  GrowthFinder finder_;
  double t_s_ = 0;
};

std::vector<std::string> paths_of(const HeapGrowth& growth) {
  std::vector<std::string> paths;
  for (const GrowingOwner& owner : growth.owners) {
    paths.push_back(owner.path.text);
  }
  return paths;
}

const GrowingOwner& owner_of(const HeapGrowth& growth, const std::string& path) {
  static const GrowingOwner kNone;
  const auto found =
      std::find_if(growth.owners.begin(), growth.owners.end(),
                   [&](const GrowingOwner& owner) { return owner.path.text == path; });
  EXPECT_NE(found, growth.owners.end()) << path;
  return found == growth.owners.end() ? kNone : *found;
}

TEST(AddressTable, FindsWhatItWasFilledWith) {
  const std::vector<std::uint64_t> addresses = {0x7000, 0x1008, 0x1ff8, 0x1000, 0x7fff12345670};
  AddressTable table;
  table.fill([&](const auto& visit) {
    for (const std::uint64_t address : addresses) {
      visit(address);
    }
  });

  std::set<AddressTable::Number> numbers;
  for (const std::uint64_t address : addresses) {
    numbers.insert(table.find(address));
  }
  EXPECT_EQ(table.size(), addresses.size());
  EXPECT_EQ(numbers.size(), addresses.size());
  EXPECT_EQ(*numbers.rbegin(), addresses.size() - 1);
  for (const std::uint64_t other : {0x1010U, 0x1004U, 0x8000U, 0x0U}) {
    EXPECT_EQ(table.find(other), AddressTable::kNone) << other;
  }
}

TEST(GrowthFinder, NamesWhatRefersToMoreAndMore) {
  Looks looks;
  const Address cache = looks.objects.list();
  looks.objects.assign(looks.main, "cache", cache);
  looks.fill(cache, 10);
  EXPECT_THAT(looks.look().owners, IsEmpty());

  looks.fill(cache, 20);
  const HeapGrowth growth = looks.look();

  ASSERT_THAT(growth.owners, SizeIs(1));
  const GrowingOwner& owner = growth.owners.front();
  EXPECT_EQ(owner.path.text, "__main__.cache");
  EXPECT_EQ(owner.kind, OwnerKind::kContainer);
  EXPECT_EQ(owner.type, "list");
  EXPECT_EQ(owner.entries, 30U);
  EXPECT_EQ(owner.grown_bytes, 20 * kPayload);
  EXPECT_EQ(owner.grown_bytes_alone, 20 * kPayload);
  EXPECT_EQ(owner.new_nodes.size(), 20U);
  EXPECT_EQ(growth.new_bytes, 20 * kPayload);
  EXPECT_EQ(growth.gone_bytes, 0U);
}

TEST(GrowthFinder, CountsTheGrowthOfAnObjectItself) {
  Looks looks;
  const Address buffer =
      looks.objects.add("bytearray", ObjectKind::kByteArray, std::uint64_t{1} << 20U);
  looks.objects.assign(looks.main, "buffer", buffer);
  looks.look();

  looks.objects.set_bytes(buffer, std::uint64_t{3} << 20U);
  const HeapGrowth growth = looks.look();

  EXPECT_EQ(owner_of(growth, "__main__.buffer").grown_bytes, std::uint64_t{2} << 20U);
}

// A buffer that always has the last ten of what another one keeps for ever.
TEST(GrowthFinder, DoesNotNameABoundedBuffer) {
  Looks looks;
  const Address cache = looks.objects.list();
  const Address recent = looks.objects.add("collections.deque", ObjectKind::kDeque);
  looks.objects.assign(looks.main, "cache", cache);
  looks.objects.assign(looks.main, "recent", recent);
  const auto go_on = [&] {
    looks.objects.forget(recent);
    for (int i = 0; i < 10; ++i) {
      const Address payload = looks.payload();
      looks.objects.item(cache, payload);
      looks.objects.item(recent, payload);
    }
  };
  go_on();
  looks.look();

  go_on();
  const HeapGrowth growth = looks.look();

  EXPECT_THAT(paths_of(growth), testing::ElementsAre("__main__.cache"));
  EXPECT_EQ(growth.owners.front().grown_bytes, 10 * kPayload);
}

TEST(GrowthFinder, GivesWhatTwoHaveToOneAndNamesTheOther) {
  Looks looks;
  const Address first = looks.objects.list();
  const Address second = looks.objects.list();
  looks.objects.assign(looks.main, "events", first);
  looks.objects.assign(looks.main, "history", second);
  looks.look();

  for (int i = 0; i < 10; ++i) {
    const Address payload = looks.payload();
    looks.objects.item(first, payload);
    looks.objects.item(second, payload);
  }
  looks.fill(second, 1);
  const HeapGrowth growth = looks.look();

  const GrowingOwner& more = owner_of(growth, "__main__.history");
  const GrowingOwner& less = owner_of(growth, "__main__.events");
  EXPECT_EQ(more.grown_bytes, 11 * kPayload);
  EXPECT_EQ(more.grown_bytes_alone, kPayload);
  EXPECT_EQ(more.shared_with, "__main__.events");
  EXPECT_EQ(less.grown_bytes, 0U);
  EXPECT_EQ(less.shared_with, "__main__.history");
  EXPECT_EQ(growth.owners.front().path.text, "__main__.history");
}

TEST(GrowthFinder, DoesNotNameWhatHasWeakReferences) {
  Looks looks;
  const Address cache = looks.objects.list();
  const Address by_name = looks.objects.dict();
  looks.objects.assign(looks.main, "cache", cache);
  looks.objects.assign(looks.main, "by_name", by_name);
  looks.look();

  looks.fill(cache, 10);
  for (int i = 0; i < 10; ++i) {
    looks.objects.item(by_name, looks.objects.add("weakref", ObjectKind::kWeakref));
  }
  const HeapGrowth growth = looks.look();

  EXPECT_THAT(paths_of(growth), testing::ElementsAre("__main__.cache"));
}

TEST(GrowthFinder, MakesOneOfManySideBySide) {
  Looks looks;
  const Address by_key = looks.objects.dict();
  looks.objects.assign(looks.main, "by_key", by_key);
  std::vector<Address> lists;
  for (int i = 0; i < 5; ++i) {
    lists.push_back(looks.objects.list());
    looks.objects.value(by_key, "key " + std::to_string(i), lists.back());
  }
  looks.look();

  for (const Address list : lists) {
    looks.fill(list, 4);
  }
  const HeapGrowth growth = looks.look();

  ASSERT_THAT(growth.owners, SizeIs(1));
  EXPECT_EQ(growth.owners.front().path.text, "__main__.by_key[*]");
  EXPECT_EQ(growth.owners.front().nodes.size(), 5U);
  EXPECT_EQ(growth.owners.front().grown_bytes, 20 * kPayload);
}

TEST(GrowthFinder, NamesFewSideBySideByTheirKeys) {
  Looks looks;
  const Address by_key = looks.objects.dict();
  looks.objects.assign(looks.main, "by_key", by_key);
  const Address list = looks.objects.list();
  looks.objects.value(by_key, "train", list);
  looks.look();

  looks.fill(list, 4);

  EXPECT_THAT(paths_of(looks.look()), testing::ElementsAre("__main__.by_key[train]"));
}

// What it has at the second look may only have taken the place of what it had at the first: of
// three looks, that between the last two counts.
TEST(GrowthFinder, JudgesVariablesThatAreAssignedFromTheSecondLookOn) {
  Looks looks;
  const auto assign_chain = [&](int length) {
    Address node = looks.payload();
    for (int i = 1; i < length; ++i) {
      const Address next = looks.payload();
      looks.objects.attribute(next, "previous", node);
      node = next;
    }
    looks.objects.assign(looks.main, "total", node);
  };
  assign_chain(10);
  looks.look();
  assign_chain(20);
  EXPECT_EQ(owner_of(looks.look(), "__main__.total").grown_bytes, 20 * kPayload);

  assign_chain(30);
  const HeapGrowth growth = looks.look();

  ASSERT_THAT(growth.owners, SizeIs(1));
  EXPECT_EQ(growth.owners.front().path.text, "__main__.total");
  EXPECT_EQ(growth.owners.front().kind, OwnerKind::kVariable);
  EXPECT_EQ(growth.owners.front().grown_bytes, 20 * kPayload);
}

TEST(GrowthFinder, DoesNotNameVariablesThatStayAsLarge) {
  Looks looks;
  const auto assign = [&] { looks.objects.assign(looks.main, "batch", looks.payload()); };
  assign();
  looks.look();
  assign();
  looks.look();  // it may have been less at the first
  for (int i = 0; i < 3; ++i) {
    assign();
    EXPECT_THAT(looks.look().owners, IsEmpty()) << i;
  }
}

TEST(GrowthFinder, DoesNotNameWhatIsEmptiedNowAndThen) {
  Looks looks;
  const Address buffer = looks.objects.list();
  looks.objects.assign(looks.main, "buffer", buffer);
  looks.fill(buffer, 100);
  looks.look();
  looks.objects.forget(buffer);
  looks.fill(buffer, 50);
  EXPECT_THAT(looks.look().owners, IsEmpty());

  looks.fill(buffer, 100);

  EXPECT_THAT(looks.look().owners, IsEmpty());
}

// Fuller at each look, but with others in it: it was emptied in between.
TEST(GrowthFinder, DoesNotNameWhatIsEmptiedBetweenLooks) {
  Looks looks;
  const Address buffer = looks.objects.list();
  looks.objects.assign(looks.main, "buffer", buffer);
  looks.fill(buffer, 10);
  looks.look();
  looks.objects.forget(buffer);
  looks.fill(buffer, 20);
  looks.look();
  looks.objects.forget(buffer);
  looks.fill(buffer, 30);

  EXPECT_THAT(looks.look().owners, IsEmpty());
}

TEST(GrowthFinder, TakesAnotherTypeAtTheSameAddressForNew) {
  Looks looks;
  const Address list = looks.objects.list();
  looks.objects.assign(looks.main, "kept", list);
  const Address reused = looks.objects.add("Sample", ObjectKind::kOther, 4000);
  looks.objects.item(list, reused);
  looks.look();

  looks.objects.put(reused, "Other", ObjectKind::kOther, 8000);
  const HeapGrowth growth = looks.look();

  EXPECT_EQ(growth.new_bytes, 8000U);
  EXPECT_EQ(growth.gone_bytes, 4000U);
}

TEST(GrowthFinder, TakesTheSameTypeAtTheSameAddressForTheSame) {
  Looks looks;
  const Address list = looks.objects.list();
  looks.objects.assign(looks.main, "kept", list);
  looks.fill(list, 3);
  looks.look();

  const HeapGrowth growth = looks.look();

  EXPECT_EQ(growth.new_bytes, 0U);
  EXPECT_EQ(growth.gone_bytes, 0U);
}

TEST(GrowthFinder, GivesTheGrowthOfAHolderOnlyForWhatItHasMore) {
  Looks looks;
  const Address queue = looks.objects.list();
  looks.objects.assign(looks.main, "queue", queue);
  looks.fill(queue, 10);
  looks.look();

  looks.objects.forget(queue);
  looks.fill(queue, 20);  // ten more; the others have taken the place of those before
  const HeapGrowth growth = looks.look();

  EXPECT_EQ(owner_of(growth, "__main__.queue").grown_bytes, 10 * kPayload);
  EXPECT_DOUBLE_EQ(owner_of(growth, "__main__.queue").share, 0.5);
}

TEST(GrowthFinder, FollowsLongLinkedLists) {
  constexpr int kNodes = 100'000;
  Looks looks;
  const auto assign_chain = [&](int length) {
    Address node = looks.objects.add("Node");
    for (int i = 1; i < length; ++i) {
      const Address next = looks.objects.add("Node");
      looks.objects.attribute(next, "previous", node);
      node = next;
    }
    looks.objects.assign(looks.main, "head", node);
  };
  assign_chain(10);
  looks.look();
  assign_chain(kNodes);
  looks.look();
  assign_chain(2 * kNodes);
  const HeapGrowth growth = looks.look();

  ASSERT_THAT(growth.owners, SizeIs(1));
  EXPECT_EQ(growth.owners.front().path.text, "__main__.head");
}

}  // namespace
}  // namespace tidemark::heap
