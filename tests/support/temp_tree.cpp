// SPDX-License-Identifier: Apache-2.0
#include "tests/support/temp_tree.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "common/check.h"

namespace tidemark::tests {

TempTree::TempTree() {
  std::string pattern = std::filesystem::temp_directory_path().string() + "/tidemark-test-XXXXXX";
  TIDEMARK_CHECK(::mkdtemp(pattern.data()) != nullptr, "cannot make a temporary folder");
  path_ = pattern;
}

TempTree::~TempTree() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempTree::path(std::string_view below) const {
  return path_ + '/' + std::string(below);
}

void TempTree::write(std::string_view below, std::string_view content) const {
  const std::filesystem::path file = path(below);
  std::filesystem::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << content;
  out.close();
  TIDEMARK_CHECK(out.good(), "cannot write a fixture");
}

void TempTree::make_directory(std::string_view below) const {
  std::filesystem::create_directories(path(below));
}

void TempTree::link(std::string_view below, std::string_view target) const {
  const std::filesystem::path file = path(below);
  std::filesystem::create_directories(file.parent_path());
  std::filesystem::create_symlink(target, file);
}

void TempTree::remove(std::string_view below) const { std::filesystem::remove_all(path(below)); }

}  // namespace tidemark::tests
