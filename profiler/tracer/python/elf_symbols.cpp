// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/python/elf_symbols.h"

#include <link.h>

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {
namespace {

// https://sourceware.org/gnu-gabi/program-loading-and-dynamic-linking.txt, "GNU hash table".
struct GnuHashHeader {
  std::uint32_t buckets;
  std::uint32_t first_symbol;
  std::uint32_t bloom_words;
  std::uint32_t bloom_shift;
};

std::uint32_t gnu_hash(const char* name) noexcept {
  std::uint32_t hash = 5381;
  for (; *name != '\0'; ++name) {
    hash = hash * 33 + static_cast<unsigned char>(*name);
  }
  return hash;
}

// strcmp() is a function of libc, which a hook does not call.
bool is_same(const char* left, const char* right) noexcept {
  while (*left == *right && *left != '\0') {
    ++left;
    ++right;
  }
  return *left == *right;
}

}  // namespace

ElfSymbols::ElfSymbols(const link_map& linked) noexcept : bias_(linked.l_addr) {
  for (const ElfW(Dyn)* entry = linked.l_ld; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    // glibc has made these absolute; what it left alone lies below the module.
    const std::uint64_t value = entry->d_un.d_ptr;
    const std::uint64_t address = value < bias_ ? value + bias_ : value;
    if (entry->d_tag == DT_SYMTAB) {
      symbols_ = address;
    } else if (entry->d_tag == DT_STRTAB) {
      strings_ = address;
    } else if (entry->d_tag == DT_GNU_HASH) {
      hashes_ = address;
    }
  }
}

ElfSymbol ElfSymbols::find(const char* name) const noexcept {
  if (symbols_ == 0 || strings_ == 0 || hashes_ == 0) {
    return {};
  }
  const auto& header = *reinterpret_cast<const GnuHashHeader*>(hashes_);
  const auto* const buckets = reinterpret_cast<const std::uint32_t*>(
      hashes_ + sizeof(GnuHashHeader) + header.bloom_words * sizeof(std::uint64_t));
  const std::uint32_t hash = gnu_hash(name);
  const std::uint32_t first = header.buckets == 0 ? 0 : buckets[hash % header.buckets];
  if (first < header.first_symbol || first == 0) {
    return {};
  }
  const std::uint32_t* const chain = buckets + header.buckets;
  const auto* const symbols = reinterpret_cast<const ElfW(Sym)*>(symbols_);
  for (std::uint32_t i = first;; ++i) {
    const std::uint32_t there = chain[i - header.first_symbol];
    const ElfW(Sym)& symbol = symbols[i];
    if ((there | 1U) == (hash | 1U) && symbol.st_shndx != SHN_UNDEF &&
        is_same(reinterpret_cast<const char*>(strings_ + symbol.st_name), name)) {
      return {bias_ + symbol.st_value, symbol.st_size};
    }
    if ((there & 1U) != 0) {  // the last one of its bucket
      return {};
    }
  }
}

}  // namespace tidemark::tracer
