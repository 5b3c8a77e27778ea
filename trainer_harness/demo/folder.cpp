// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/demo/folder.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

namespace tidemark::demo {

Result<DemoFolder> DemoFolder::make(const std::string& keep) {
  std::error_code error;
  if (!keep.empty()) {
    std::filesystem::create_directories(keep, error);
    if (error) {
      return system_error(fmt::format("cannot make {}", keep), error.value());
    }
    return DemoFolder(keep, true);
  }
  const std::filesystem::path base = std::filesystem::temp_directory_path(error);
  std::string path = ((error ? "/tmp" : base) / "tidemark-demo-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) {
    return system_error(fmt::format("cannot make a folder like {}", path), errno);
  }
  return DemoFolder(std::move(path), false);
}

DemoFolder::~DemoFolder() {
  if (!is_kept_) {
    std::error_code ignored;  // a temporary folder: somebody else sweeps up what is left
    std::filesystem::remove_all(path_, ignored);
  }
}

}  // namespace tidemark::demo
