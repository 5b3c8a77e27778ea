// SPDX-License-Identifier: Apache-2.0
// What a terminal sends, in pieces of any size: every byte is taken in the end, no key is of a kind
// that it cannot be, and nothing that keys do leaves its bounds.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/check.h"
#include "common/text.h"
#include "dashboard/key_decoder.h"
#include "dashboard/view_state.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidemark;             // NOLINT(google-build-using-namespace)
  using namespace tidemark::dashboard;  // NOLINT(google-build-using-namespace)
  if (size == 0) {
    return 0;
  }
  const std::size_t piece = 1 + data[0] % 16;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  KeyDecoder decoder;
  std::vector<Key> keys;
  while (!bytes.empty()) {
    decoder.feed(bytes.substr(0, piece), keys);
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  decoder.flush(keys);
  TIDEMARK_CHECK(!decoder.is_waiting(), "nothing is left");

  Scene scene;
  scene.rows = {{Role::kTrainer, {1, 1}}, {Role::kCompileWorker, {}}};
  scene.rows_shown = 2;
  scene.first_row_y = 5;
  scene.timeline_height = 5;
  scene.span_s = 100.0;
  scene.window_s = 60.0;
  scene.window_from_s = 40.0;
  scene.plot_columns = 60;
  scene.can_mark = true;
  scene.can_signal = true;
  ViewState state;
  for (const Key& key : keys) {
    TIDEMARK_CHECK(
        key.kind != Key::Kind::kText || utf8_sequence_length(key.text) == key.text.size(),
        "text is one character");
    state = apply_key(state, key, scene).state;
    TIDEMARK_CHECK(state.back_s >= 0.0 && state.back_s <= 40.0, "inside of the run");
    TIDEMARK_CHECK(!state.cursor_s || (*state.cursor_s >= 0.0 && *state.cursor_s <= 100.0),
                   "a cursor is on the run");
    TIDEMARK_CHECK(state.filter.size() <= 64, "a filter has an end");
  }
  return 0;
}
