// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tidemark::tests {

// A private folder that stands for a root file system (proc/, sys/fs/cgroup/, dev/shm/). Removed
// with all its content at the end of the test.
class TempTree {
 public:
  TempTree();
  ~TempTree();
  TempTree(const TempTree&) = delete;
  TempTree& operator=(const TempTree&) = delete;

  const std::string& path() const { return path_; }
  std::string path(std::string_view below) const;

  // Creates the folders above as well; replaces what was there. Aborts the test program when the
  // file system refuses.
  void write(std::string_view below, std::string_view content) const;
  void make_directory(std::string_view below) const;
  void link(std::string_view below, std::string_view target) const;
  void remove(std::string_view below) const;

 private:
  std::string path_;
};

}  // namespace tidemark::tests
