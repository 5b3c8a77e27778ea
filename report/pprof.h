// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/profile_model.h"

namespace tidemark::report {

// An uncompressed profile.proto (`go tool pprof FILE`; compress it to save space). Each sample has
// inuse_space, inuse_objects, alloc_space, alloc_objects and growth_space; inuse_space is the
// default. Sites carry the label "kind".
std::string export_pprof(const Profile& profile);

}  // namespace tidemark::report
