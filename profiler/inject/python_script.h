// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "common/result.h"
#include "profiler/inject/remote_memory.h"
#include "profiler/inject/remote_modules.h"

namespace tidemark::inject {

// Asks an interpreter of Python 3.14 to run a script (PEP 768), one of its threads after the other,
// until `has_run` says so: a thread does when it next comes to that in its own code. If none has in
// time, the request is withdrawn. An error says why it was not run.
Status run_python_script(pid_t pid, const RemoteMemory& memory, const AddressSpace& space,
                         const std::string& path, std::int64_t timeout_ns,
                         const std::function<bool()>& has_run);

}  // namespace tidemark::inject
