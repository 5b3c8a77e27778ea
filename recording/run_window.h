// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/result.h"

namespace tidemark::recording {

// Memory of the tree over a short stretch of a run: footprint, or rss where that is all there is.
struct WindowPoint {
  double t_s = 0.0;
  double min_bytes = 0.0;
  double max_bytes = 0.0;
};

// What a run file has of the tree between two moments, merged to at most `most` stretches. Also of
// a file that this process itself is recording: nothing but SQLite touches it, because closing
// another descriptor of it would drop the recorder's locks (fcntl(2)). It takes time in proportion
// to the samples in the window, not to the length of the run.
Result<std::vector<WindowPoint>> read_tree_window(const std::string& path, double from_s,
                                                  double to_s, std::size_t most);

}  // namespace tidemark::recording
