// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/profile_model.h"

namespace tidemark::report {

// Folded stacks as flame graph tools read them: "process;outermost;...;innermost 123" per line,
// what is not heap with its kind behind the innermost frame ("[shared map]"); equal stacks added
// up, in the order of the text. ';' in a name becomes ':', what is not printable is escaped. Sites
// whose measure is 0 are left out.
std::string export_folded(const Profile& profile, ProfileMeasure measure);

}  // namespace tidemark::report
