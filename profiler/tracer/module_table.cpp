// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/module_table.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include "profiler/tracer/sys.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {
namespace {

using wire::Module;
using wire::Table;

std::uint64_t number(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

// Reads the build id from the notes of a module that is mapped from `begin` to `end`.
void read_build_id(std::uint64_t begin, std::uint64_t end, std::uint64_t bias,
                   Module& module) noexcept {
  const auto* const file = reinterpret_cast<const ElfW(Ehdr)*>(begin);
  if (end - begin < sizeof(*file) || __builtin_memcmp(file->e_ident, ELFMAG, SELFMAG) != 0 ||
      file->e_phoff > end - begin ||
      file->e_phnum * sizeof(ElfW(Phdr)) > end - begin - file->e_phoff) {
    return;
  }
  const auto* const headers = reinterpret_cast<const ElfW(Phdr)*>(begin + file->e_phoff);
  for (unsigned i = 0; i < file->e_phnum; ++i) {
    std::uint64_t at = bias + headers[i].p_vaddr;
    const std::uint64_t stop = at + headers[i].p_memsz;
    if (headers[i].p_type != PT_NOTE || at < begin || stop > end || stop < at) {
      continue;
    }
    const std::uint64_t align = headers[i].p_align == 8 ? 8 : 4;
    const auto padded = [align](std::uint64_t bytes) { return (bytes + align - 1) & ~(align - 1); };
    while (stop - at >= sizeof(ElfW(Nhdr))) {
      const auto* const note = reinterpret_cast<const ElfW(Nhdr)*>(at);
      const std::uint64_t name = at + sizeof(*note);
      const std::uint64_t body = name + padded(note->n_namesz);
      const std::uint64_t next = body + padded(note->n_descsz);
      if (next > stop || next <= at) {
        break;
      }
      if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
          __builtin_memcmp(reinterpret_cast<const void*>(name), "GNU", 4) == 0 &&
          note->n_descsz <= sizeof(module.build_id)) {
        __builtin_memcpy(module.build_id, reinterpret_cast<const void*>(body), note->n_descsz);
        module.build_id_bytes = note->n_descsz;
        return;
      }
      at = next;
    }
  }
}

// A hash of what identifies its file: path, size and build id. Never 0.
std::uint64_t identity_of(const dl_find_object& found) noexcept {
  Module module = {};
  const std::uint64_t begin = number(found.dlfo_map_start);
  const std::uint64_t end = number(found.dlfo_map_end);
  read_build_id(begin, end, found.dlfo_link_map->l_addr, module);
  std::uint64_t hash = wire::mix(begin) ^ (end - begin);
  const char* const name = found.dlfo_link_map->l_name;
  for (std::size_t i = 0; name != nullptr && name[i] != '\0'; ++i) {
    hash = (hash ^ static_cast<unsigned char>(name[i])) * 0x100000001b3;
  }
  for (std::size_t i = 0; i < module.build_id_bytes; ++i) {
    hash = (hash ^ module.build_id[i]) * 0x100000001b3;
  }
  return wire::mix(hash) | 1U;
}

}  // namespace

void ModuleTable::set_up() noexcept {
  set_up(reinterpret_cast<FindObject>(dlsym(RTLD_DEFAULT, "_dl_find_object")));
}

void ModuleTable::set_up(FindObject find) noexcept {
  find_ = find;
  if (entries_ == nullptr) {
    entries_ = static_cast<Entry*>(sys::map_private(kSlots * sizeof(Entry)));
  }
  const long bytes = sys::readlink("/proc/self/exe", program_, kPathBytes - 1);
  program_[bytes > 0 ? bytes : 0] = '\0';
}

ModuleTable::Entry* ModuleTable::slot_for(std::uint64_t begin) noexcept {
  const std::uint64_t mixed = wire::mix(begin);
  for (std::size_t i = 0; i < 64 && entries_ != nullptr; ++i) {
    Entry& entry = entries_[(mixed + i) & (kSlots - 1)];
    const std::uint64_t there = entry.begin.load(std::memory_order_acquire);
    if (there == begin || there == 0) {
      return &entry;
    }
  }
  return nullptr;
}

bool ModuleTable::is_same(const Entry& entry, const dl_find_object& found) noexcept {
  return entry.begin.load(std::memory_order_acquire) == number(found.dlfo_map_start) &&
         !entry.closed.load(std::memory_order_relaxed) && entry.end == number(found.dlfo_map_end) &&
         entry.linked == found.dlfo_link_map && entry.unwind_table == found.dlfo_eh_frame;
}

void ModuleTable::add_modules_of(const std::uint64_t* pcs, std::size_t count) noexcept {
  dl_find_object found = {};
  for (std::size_t i = 0; i < count && find_ != nullptr; ++i) {
    const bool same = pcs[i] >= number(found.dlfo_map_start) && pcs[i] < number(found.dlfo_map_end);
    if (!same && find_(reinterpret_cast<void*>(pcs[i]), &found) == 0) {
      update(found, true);
    }
  }
}

void ModuleTable::recheck_closed(const std::uint64_t* pcs, std::size_t count) noexcept {
  const std::uint64_t begin = closed_begin_.load(std::memory_order_relaxed);
  const std::uint64_t end = closed_end_.load(std::memory_order_relaxed);
  dl_find_object found = {};
  for (std::size_t i = 0; i < count && find_ != nullptr; ++i) {
    if (pcs[i] >= begin && pcs[i] < end && find_(reinterpret_cast<void*>(pcs[i]), &found) == 0) {
      update(found, false);
    }
  }
}

void ModuleTable::update(const dl_find_object& found, bool write_it) noexcept {
  Entry* entry = slot_for(number(found.dlfo_map_start));
  if (entry == nullptr ||
      (is_same(*entry, found) && (!write_it || entry->written.load(std::memory_order_acquire)))) {
    return;
  }
  const BoundedLockGuard guard(lock_, BoundedLockGuard::Wait::kBounded);
  entry = slot_for(number(found.dlfo_map_start));  // an empty slot may have been taken
  if (!guard || entry == nullptr) {
    return;
  }
  if (!is_same(*entry, found)) {
    replace(*entry, found);
  }
  if (write_it && !entry->written.load(std::memory_order_relaxed)) {
    write_module(found);
    entry->written.store(true, std::memory_order_release);
  }
}

// Called with the lock held.
void ModuleTable::replace(Entry& entry, const dl_find_object& found) noexcept {
  const std::uint64_t begin = number(found.dlfo_map_start);
  const std::uint64_t end = number(found.dlfo_map_end);
  const std::uint64_t identity = identity_of(found);
  std::uint64_t change = 0;
  const bool is_first = entry.begin.load(std::memory_order_relaxed) == 0;
  if (is_first) {
    entry.written.store(false, std::memory_order_relaxed);
  } else if (entry.identity != identity) {
    change ^= (entry.overlapped ? 0 : entry.identity) ^ identity;
    entry.written.store(false, std::memory_order_relaxed);
  } else if (entry.overlapped) {
    change ^= entry.identity;
    entry.written.store(false, std::memory_order_relaxed);
  }
  entry.begin.store(0, std::memory_order_release);
  entry.end = end;
  entry.linked = found.dlfo_link_map;
  entry.unwind_table = found.dlfo_eh_frame;
  entry.identity = identity;
  entry.overlapped = false;
  entry.closed.store(false, std::memory_order_relaxed);
  for (Entry& other : entries()) {
    const std::uint64_t there = other.begin.load(std::memory_order_relaxed);
    if (there != 0 && there < end && other.end > begin && !other.overlapped) {
      other.closed.store(true, std::memory_order_relaxed);  // the new module lies over it
      other.overlapped = true;
      change ^= other.identity;
    }
  }
  set_mark(entry, begin, end, is_first);
  entry.begin.store(begin, std::memory_order_release);
  generation_.fetch_xor(change, std::memory_order_acq_rel);
  update_closed_range();
  if (python_ != nullptr) {
    python_->consider(*found.dlfo_link_map, {begin, end});
  }
}

// `entry` has its identity already. Called with the lock held.
void ModuleTable::set_mark(Entry& entry, std::uint64_t begin, std::uint64_t end,
                           bool is_first) noexcept {
  if (is_first) {
    entry.unmarked = entry.identity;
    entry.unmarked_end = end;
    for (const Entry& other : entries()) {
      const std::uint64_t there = other.begin.load(std::memory_order_relaxed);
      if (there != 0 && other.unmarked != 0 && there < end && other.unmarked_end > begin) {
        entry.unmarked = 0;  // another module without a mark was at these addresses
      }
    }
  }
  const bool needs_mark = entry.identity != entry.unmarked;
  entry.mark.store(needs_mark ? entry.identity : 0, std::memory_order_relaxed);
  if (!needs_mark) {
    return;
  }
  const std::uint64_t low = marked_begin_.load(std::memory_order_relaxed);
  const std::uint64_t high = marked_end_.load(std::memory_order_relaxed);
  marked_begin_.store(high == 0 || begin < low ? begin : low, std::memory_order_relaxed);
  marked_end_.store(end > high ? end : high, std::memory_order_relaxed);
}

bool ModuleTable::find_marks(const std::uint64_t* pcs, std::size_t count,
                             std::uint64_t* marks) noexcept {
  const std::uint64_t low = marked_begin_.load(std::memory_order_relaxed);
  const std::uint64_t high = marked_end_.load(std::memory_order_relaxed);
  std::size_t innermost = 0;
  while (innermost < count && (pcs[innermost] < low || pcs[innermost] >= high)) {
    ++innermost;
  }
  if (innermost == count || find_ == nullptr) {
    return false;
  }
  std::uint64_t all = 0;
  std::uint64_t here = 0;
  dl_find_object found = {};
  for (std::size_t i = count; i-- > 0;) {
    if (pcs[i] >= low && pcs[i] < high) {
      if (pcs[i] < number(found.dlfo_map_start) || pcs[i] >= number(found.dlfo_map_end)) {
        found = {};
        here = find_(reinterpret_cast<void*>(pcs[i]), &found) == 0 ? mark_at(found) : 0;
      }
      all = here != 0 ? wire::mix(all ^ here) : all;
    }
    marks[i] = all;
  }
  return all != 0;
}

std::uint64_t ModuleTable::mark_at(const dl_find_object& found) noexcept {
  const Entry* const entry = slot_for(number(found.dlfo_map_start));
  return entry != nullptr && entry->begin.load(std::memory_order_acquire) != 0
             ? entry->mark.load(std::memory_order_relaxed)
             : 0;
}

void ModuleTable::update_closed_range() noexcept {
  std::uint64_t begin = ~std::uint64_t{0};
  std::uint64_t end = 0;
  for (const Entry& entry : entries()) {
    const std::uint64_t there = entry.begin.load(std::memory_order_relaxed);
    if (there != 0 && entry.closed.load(std::memory_order_relaxed) && !entry.overlapped) {
      begin = there < begin ? there : begin;
      end = entry.end > end ? entry.end : end;
    }
  }
  closed_begin_.store(begin, std::memory_order_relaxed);
  closed_end_.store(end, std::memory_order_relaxed);
}

void ModuleTable::before_dlclose() noexcept {
  if (python_ != nullptr) {
    python_->before_unload();
  }
}

void ModuleTable::after_dlclose() noexcept {
  if (python_ != nullptr) {
    python_->after_unload();
  }
}

void ModuleTable::forget_python(std::uint64_t closed) noexcept {
  const ByteRange module = python_ != nullptr ? python_->module() : ByteRange{};
  dl_find_object found = {};
  if (module.begin != 0 &&
      (module.begin == closed || find_(reinterpret_cast<void*>(module.begin), &found) != 0 ||
       number(found.dlfo_map_start) != module.begin)) {
    python_->forget();
  }
}

void ModuleTable::on_dlclose(std::uint64_t begin) noexcept {
  if (find_ != nullptr) {
    forget_python(begin);
  }
  const BoundedLockGuard guard(lock_, BoundedLockGuard::Wait::kBounded);
  if (find_ == nullptr || !guard) {
    return;
  }
  for (Entry& entry : entries()) {
    const std::uint64_t there = entry.begin.load(std::memory_order_relaxed);
    dl_find_object found = {};
    // The one that was closed is rechecked even where it looks the same: another thread may have
    // loaded a similar one meanwhile.
    if (there != 0 && !entry.closed.load(std::memory_order_relaxed) &&
        (there == begin || find_(reinterpret_cast<void*>(there), &found) != 0 ||
         !is_same(entry, found))) {
      entry.closed.store(true, std::memory_order_relaxed);
    }
  }
  update_closed_range();
}

bool ModuleTable::add_path(const link_map& linked, std::uint32_t& offset,
                           std::uint32_t& bytes) noexcept {
  const char* const path =
      linked.l_name == nullptr || linked.l_name[0] == '\0' ? program_ : linked.l_name;
  std::uint64_t length = 0;
  while (length < kPathBytes && path[length] != '\0') {
    ++length;
  }
  std::uint64_t at = 0;
  if (length == 0 || !store_->take(Table::kStrings, length, at)) {
    return false;
  }
  __builtin_memcpy(store_->item<char>(Table::kStrings, at), path, length);
  offset = static_cast<std::uint32_t>(at);
  bytes = static_cast<std::uint32_t>(length);
  return true;
}

void ModuleTable::write_module(const dl_find_object& found) noexcept {
  std::uint64_t index = 0;
  if (!store_->take(Table::kModules, 1, index)) {
    return;
  }
  auto& module = *store_->item<Module>(Table::kModules, index);
  module.begin = number(found.dlfo_map_start);
  module.end = number(found.dlfo_map_end);
  module.load_bias = found.dlfo_link_map->l_addr;
  read_build_id(module.begin, module.end, module.load_bias, module);
  add_path(*found.dlfo_link_map, module.path_offset, module.path_bytes);
  std::atomic_ref(module.ready).store(1, std::memory_order_release);
}

void ModuleTable::clear() noexcept {
  for (Entry& entry : entries()) {
    if (entry.begin.load(std::memory_order_relaxed) != 0) {
      entry.begin.store(0, std::memory_order_relaxed);
    }
  }
  closed_begin_.store(0, std::memory_order_relaxed);
  closed_end_.store(0, std::memory_order_relaxed);
  marked_begin_.store(0, std::memory_order_relaxed);
  marked_end_.store(0, std::memory_order_relaxed);
  lock_.clear();
}

}  // namespace tidemark::tracer
