// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "live/line_writer.h"
#include "live/watch_handler.h"

namespace tidemark::live {

// What `monitor` shows: lines for people, or JSON. `lines` must outlive the view.
std::unique_ptr<WatchView> make_plain_view(LineWriter& lines);
std::unique_ptr<WatchView> make_json_view(LineWriter& lines);

}  // namespace tidemark::live
