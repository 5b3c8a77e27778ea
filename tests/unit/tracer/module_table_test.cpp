// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/module_table.h"

#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/tracer/store_folder.h"

namespace tidemark::tracer {
namespace {

using wire::Table;

constexpr std::uint64_t kPage = 4096;

// A module that somebody has loaded, in the place of what a dynamic linker knows of it.
struct Loaded {
  char* begin;
  std::uint64_t bytes;
  std::string path;
  link_map linked = {};
};
std::list<Loaded> g_loaded;

int find_loaded(void* address, dl_find_object* result) {
  for (Loaded& each : g_loaded) {
    if (address >= each.begin && address < each.begin + each.bytes) {
      *result = {};
      result->dlfo_map_start = each.begin;
      result->dlfo_map_end = each.begin + each.bytes;
      result->dlfo_link_map = &each.linked;
      result->dlfo_eh_frame = each.begin + 64;
      return 0;
    }
  }
  return -1;
}

class ModuleTableTest : public testing::Test {
 protected:
  ModuleTableTest() {
    g_loaded.clear();
    table_->set_up(find_loaded);
  }

  // Loads a module of two pages, or more, at a page of the space that all modules come to.
  std::uint64_t load(std::size_t page, const std::string& path, char build_id,
                     std::size_t pages = 2) {
    char* const at = space() + page * kPage;
    g_loaded.push_back({at, pages * kPage, path});
    Loaded& added = g_loaded.back();
    added.linked.l_addr = number(at);
    added.linked.l_name = added.path.data();
    write_file(at, build_id);
    return number(at);
  }
  void unload(std::uint64_t begin) {
    g_loaded.remove_if([begin](const Loaded& each) { return number(each.begin) == begin; });
    table_->on_dlclose(begin);
  }
  void see(std::uint64_t pc) {
    table_->recheck(&pc, 1);
    table_->add_modules_of(&pc, 1);
  }
  std::uint64_t generation_at(std::uint64_t pc) {
    table_->recheck(&pc, 1);
    return table_->generation();
  }

  // Of these frames, from each one to the last.
  std::vector<std::uint64_t> marks(std::vector<std::uint64_t> pcs) {
    std::vector<std::uint64_t> found(pcs.size(), 0);
    table_->recheck(pcs.data(), pcs.size());
    table_->marks(pcs.data(), pcs.size(), found.data());
    return found;
  }

  std::uint64_t listed() { return directory(Table::kModules).used.load(); }
  const wire::Module& module(std::uint64_t index) {
    return *folder_.store().item<wire::Module>(Table::kModules, index);
  }
  std::string path_of(std::uint64_t index) {
    const auto* const text = folder_.store().item<char>(Table::kStrings, module(index).path_offset);
    return {text, module(index).path_bytes};
  }
  ModuleTable& table() { return *table_; }
  TraceStore& store() { return folder_.store(); }

 private:
  static std::uint64_t number(const void* pointer) {
    return reinterpret_cast<std::uint64_t>(pointer);
  }
  wire::TableDirectory& directory(Table table) {
    return folder_.store().header()->table[static_cast<std::size_t>(table)];
  }
  char* space() {
    return reinterpret_cast<char*>((number(space_.data()) + kPage - 1) & ~(kPage - 1));
  }
  // The beginning of an object file: a header, and a note with a build id of four times one letter.
  static void write_file(char* at, char build_id) {
    ElfW(Ehdr) file = {};
    std::memcpy(file.e_ident, ELFMAG, SELFMAG);
    file.e_phoff = sizeof(file);
    file.e_phnum = 1;
    ElfW(Phdr) note = {};
    note.p_type = PT_NOTE;
    note.p_vaddr = 256;
    note.p_memsz = sizeof(ElfW(Nhdr)) + 4 + 4;
    note.p_align = 4;
    const ElfW(Nhdr) head = {4, 4, NT_GNU_BUILD_ID};
    std::memcpy(at, &file, sizeof(file));
    std::memcpy(at + file.e_phoff, &note, sizeof(note));
    std::memcpy(at + 256, &head, sizeof(head));
    std::memcpy(at + 256 + sizeof(head), "GNU", 4);
    std::memset(at + 256 + sizeof(head) + 4, build_id, 4);
  }

  StoreFolder folder_;
  std::vector<char> space_ = std::vector<char>(33 * kPage);
  std::unique_ptr<ModuleTable> table_ = std::make_unique<ModuleTable>(folder_.store());
};

TEST_F(ModuleTableTest, ListsAModuleOnceHoweverOftenItIsSeen) {
  const std::uint64_t one = load(0, "/lib/one.so", 'a');
  for (std::uint64_t i = 0; i < 100; ++i) {
    see(one + i);
  }

  ASSERT_EQ(listed(), 1U);
  EXPECT_EQ(module(0).begin, one);
  EXPECT_EQ(module(0).end, one + 2 * kPage);
  EXPECT_EQ(module(0).load_bias, one);
  EXPECT_EQ(module(0).ready, 1U);
  EXPECT_EQ(module(0).build_id_bytes, 4U);
  EXPECT_EQ(std::memcmp(module(0).build_id, "aaaa", 4), 0);
  EXPECT_EQ(path_of(0), "/lib/one.so");
}

TEST_F(ModuleTableTest, TheProgramIsListedByItsOwnPath) {
  see(load(0, "", 'p'));

  EXPECT_EQ(path_of(0), std::filesystem::read_symlink("/proc/self/exe").string());
}

TEST_F(ModuleTableTest, WhatIsInNoModuleIsNotListed) {
  const std::uint64_t one = load(0, "/lib/one.so", 'a');
  see(one + 2 * kPage);

  EXPECT_EQ(listed(), 0U);
}

TEST_F(ModuleTableTest, AnotherModuleAtTheSamePlaceIsListedAfterIt) {
  const std::uint64_t place = load(0, "/lib/one.so", 'a');
  see(place);
  const std::uint64_t first = generation_at(place);
  unload(place);
  load(0, "/lib/two.so", 'b');

  EXPECT_NE(generation_at(place), first);
  see(place);
  ASSERT_EQ(listed(), 2U);
  EXPECT_EQ(path_of(1), "/lib/two.so");
  EXPECT_EQ(module(1).begin, module(0).begin);
}

TEST_F(ModuleTableTest, ANewBuildOfTheSameFileIsAnotherModule) {
  const std::uint64_t place = load(0, "/lib/one.so", 'a');
  see(place);
  const std::uint64_t first = generation_at(place);
  unload(place);
  load(0, "/lib/one.so", 'b');
  see(place);

  EXPECT_EQ(listed(), 2U);
  EXPECT_NE(generation_at(place), first);
}

TEST_F(ModuleTableTest, TwoAlternatingModulesHaveTwoGenerations) {
  const std::uint64_t place = load(0, "/lib/one.so", 'a');
  std::vector<std::uint64_t> seen;
  for (int i = 0; i < 10; ++i) {
    see(place);
    seen.push_back(generation_at(place));
    unload(place);
    load(0, i % 2 == 0 ? "/lib/two.so" : "/lib/one.so", i % 2 == 0 ? 'b' : 'a');
  }

  for (std::size_t i = 2; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i], seen[i - 2]);
    EXPECT_NE(seen[i], seen[i - 1]);
  }
  EXPECT_EQ(listed(), 10U);  // each time with the nodes that come after it
}

TEST_F(ModuleTableTest, AModuleThatReturnsToItsPlaceIsTheSame) {
  const std::uint64_t place = load(0, "/lib/one.so", 'a');
  see(place);
  const std::uint64_t first = generation_at(place);
  unload(place);
  load(0, "/lib/one.so", 'a');
  see(place);

  EXPECT_EQ(generation_at(place), first);
  EXPECT_EQ(listed(), 1U);
}

TEST_F(ModuleTableTest, AModuleOverTheEndOfAClosedOneReplacesIt) {
  std::vector<std::uint64_t> seen;
  for (int i = 0; i < 4; ++i) {
    const std::uint64_t one = load(0, "/lib/one.so", 'a', 4);
    see(one);
    seen.push_back(generation_at(one));
    unload(one);
    const std::uint64_t two = load(2, "/lib/two.so", 'b', 4);
    see(two + 10);
    seen.push_back(generation_at(two));
    unload(two);
  }

  EXPECT_NE(seen[1], seen[0]);
  for (std::size_t i = 3; i < seen.size(); ++i) {  // two by turns, once both were there
    EXPECT_EQ(seen[i], seen[i - 2]);
    EXPECT_NE(seen[i], seen[i - 1]);
  }
  EXPECT_EQ(listed(), 8U);
}

TEST_F(ModuleTableTest, OnlyFramesInAModuleThatReplacedAnotherHaveAMark) {
  const std::uint64_t program = load(20, "", 'p');
  see(program);
  const std::uint64_t place = load(0, "/lib/one.so", 'a');
  see(place);
  const std::vector<std::uint64_t> none = {0, 0};
  EXPECT_EQ(marks({place, program}), none);
  std::vector<std::uint64_t> of_two;
  for (int i = 0; i < 3; ++i) {
    unload(place);
    load(0, "/lib/two.so", 'b');
    see(place);
    of_two.push_back(marks({place, program})[0]);
    EXPECT_EQ(marks({place, program})[1], 0U);  // what is further in does not matter
    EXPECT_EQ(marks({program, place})[0], of_two[0]);
    EXPECT_EQ(marks({program, program}), none);
    EXPECT_NE(marks({place, place})[0], of_two[0]);
    unload(place);
    load(0, "/lib/one.so", 'a');
    EXPECT_EQ(marks({place, program}), none);
  }

  EXPECT_NE(of_two[0], 0U);
  EXPECT_EQ(of_two, std::vector<std::uint64_t>(3, of_two[0]));
}

TEST_F(ModuleTableTest, AModuleOverPartOfAnotherOneHasAMark) {
  const std::uint64_t one = load(0, "/lib/one.so", 'a', 4);
  see(one);
  unload(one);
  const std::uint64_t two = load(2, "/lib/two.so", 'b', 4);
  see(two + 10);
  EXPECT_NE(marks({two + 10})[0], 0U);
  unload(two);
  const std::uint64_t three = load(1, "/lib/three.so", 'c', 1);  // `one` was there, long ago
  see(three);
  EXPECT_NE(marks({three})[0], 0U);
  unload(three);
  const std::uint64_t four = load(5, "/lib/four.so", 'd', 2);  // shares addresses with `two`
  see(four);

  EXPECT_EQ(marks({four})[0], 0U);  // which has a mark itself
}

TEST_F(ModuleTableTest, AChildListsItsModulesAgain) {
  const std::uint64_t one = load(0, "/lib/one.so", 'a');
  see(one);
  table().clear();
  see(one);

  EXPECT_EQ(listed(), 2U);
}

TEST_F(ModuleTableTest, WithoutALookupNothingIsListed) {
  const std::uint64_t one = load(0, "/lib/one.so", 'a');
  table().set_up(nullptr);
  see(one);
  unload(one);

  EXPECT_EQ(listed(), 0U);
}

}  // namespace
}  // namespace tidemark::tracer
