// SPDX-License-Identifier: Apache-2.0
#include "common/role.h"

#include <array>

#include "common/enum_names.h"

namespace tidemark {
namespace {

constexpr std::array<std::string_view, kRoleCount> kNames{"other",
                                                          "trainer",
                                                          "rank",
                                                          "compile_worker",
                                                          "dataloader_worker",
                                                          "wrapper",
                                                          "launcher",
                                                          "resource_tracker",
                                                          "shm_manager",
                                                          "forkserver",
                                                          "ray",
                                                          "inference"};

}  // namespace

std::string_view role_name(Role role) { return kNames[static_cast<std::size_t>(role)]; }

std::optional<Role> role_from_name(std::string_view name) {
  if (name == "main") {
    return Role::kTrainer;
  }
  return enum_from_name<Role>(kNames, name);
}

}  // namespace tidemark
