// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "live/line_writer.h"
#include "live/watch_handler.h"

namespace tidemark::live {

// Plays a recording into a view, `speed` times as fast as it was, and returns the exit code.
int replay(const std::string& path, double speed,
           const std::function<std::unique_ptr<WatchView>(LineWriter& lines)>& make_view);

}  // namespace tidemark::live
