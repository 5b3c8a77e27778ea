// SPDX-License-Identifier: Apache-2.0
// docs/wire-format.md says what profiler/wire/trace_layout.h is.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "common/io.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::wire {
namespace {

struct Field {
  const char* name;
  std::size_t offset;
  std::size_t bytes;
};

// The rows of the first table below the heading, as far as "| offset | bytes | `name` |".
std::string rows_of(const std::string& page, const std::string& heading) {
  const std::size_t begin = page.find("# " + heading + "\n");
  if (begin == std::string::npos) {
    return "no heading " + heading;
  }
  std::string rows;
  std::size_t at = page.find("\n| ---: |", begin);
  at = page.find('\n', at + 1) + 1;
  while (at < page.size() && page[at] == '|') {
    std::size_t cell = at;
    for (int i = 0; i < 3; ++i) {
      cell = page.find('|', cell + 1);
    }
    rows += page.substr(at, cell - at + 1) + "\n";
    at = page.find('\n', at) + 1;
  }
  return rows;
}

std::string rows_of(const std::vector<Field>& fields) {
  std::string rows;
  for (const Field& field : fields) {
    rows += "| " + std::to_string(field.offset) + " | " + std::to_string(field.bytes) + " | `" +
            field.name + "` |\n";
  }
  return rows;
}

// The fields in the order of the page; that none is missing shows in their sizes.
#define FIELD(type, name) \
  Field { #name, offsetof(type, name), sizeof(type::name) }

TEST(WireLayout, IsWhatItsPageSays) {
  const auto page = read_file(TIDEMARK_SOURCE_DIR "/docs/wire-format.md");
  ASSERT_TRUE(page);

  EXPECT_EQ(rows_of(*page, "Header"),
            rows_of({FIELD(Header, magic),          FIELD(Header, format_version),
                     FIELD(Header, header_bytes),   FIELD(Header, pid),
                     FIELD(Header, parent_pid),     FIELD(Header, start_ticks),
                     FIELD(Header, pid_namespace),  FIELD(Header, created_ns),
                     FIELD(Header, stage),          FIELD(Header, forked),
                     FIELD(Header, extend_errno),   FIELD(Header, python),
                     FIELD(Header, file_bytes),     FIELD(Header, private_bytes),
                     FIELD(Header, periods),        FIELD(Header, period_count),
                     FIELD(Header, reserved),       FIELD(Header, reason),
                     FIELD(Header, python_problem), FIELD(Header, losses),
                     FIELD(Header, control),        FIELD(Header, table),
                     FIELD(Header, recycled)}));
  EXPECT_EQ(
      rows_of(*page, "RecycledSites"),
      rows_of({FIELD(RecycledSites, sites), FIELD(RecycledSites, bytes),
               FIELD(RecycledSites, block_units), FIELD(RecycledSites, temporary_block_units)}));
  EXPECT_EQ(
      rows_of(*page, "Losses"),
      rows_of({FIELD(Losses, live_full), FIELD(Losses, sites_full), FIELD(Losses, ranges_full),
               FIELD(Losses, unknown_frees), FIELD(Losses, truncated_stacks),
               FIELD(Losses, empty_stacks), FIELD(Losses, extend_failures),
               FIELD(Losses, reentered), FIELD(Losses, missed_frees), FIELD(Losses, reserved)}));
  EXPECT_EQ(
      rows_of(*page, "Control"),
      rows_of({FIELD(Control, mode), FIELD(Control, epoch), FIELD(Control, sample_every_bytes),
               FIELD(Control, most_file_bytes), FIELD(Control, reserved)}));
  EXPECT_EQ(rows_of(*page, "TableDirectory"),
            rows_of({FIELD(TableDirectory, used), FIELD(TableDirectory, extents),
                     FIELD(TableDirectory, reserved), FIELD(TableDirectory, extent)}));
}

TEST(WireLayout, TablesAreWhatTheirPageSays) {
  const auto page = read_file(TIDEMARK_SOURCE_DIR "/docs/wire-format.md");
  ASSERT_TRUE(page);

  EXPECT_EQ(
      rows_of(*page, "Module"),
      rows_of({FIELD(Module, begin), FIELD(Module, end), FIELD(Module, load_bias),
               FIELD(Module, path_offset), FIELD(Module, path_bytes), FIELD(Module, reserved),
               FIELD(Module, build_id_bytes), FIELD(Module, build_id), FIELD(Module, ready)}));
  EXPECT_EQ(
      rows_of(*page, "PythonCode"),
      rows_of({FIELD(PythonCode, file_offset), FIELD(PythonCode, file_bytes),
               FIELD(PythonCode, name_offset), FIELD(PythonCode, name_bytes),
               FIELD(PythonCode, lines_offset), FIELD(PythonCode, lines_bytes),
               FIELD(PythonCode, first_line), FIELD(PythonCode, minor), FIELD(PythonCode, reserved),
               FIELD(PythonCode, ready), FIELD(PythonCode, reserved_end)}));
  EXPECT_EQ(rows_of(*page, "StackNode"),
            rows_of({FIELD(StackNode, value), FIELD(StackNode, parent), FIELD(StackNode, kind),
                     FIELD(StackNode, modules), FIELD(StackNode, uses), FIELD(StackNode, check)}));
  EXPECT_EQ(rows_of(*page, "Site"),
            rows_of({FIELD(Site, alloc_bytes), FIELD(Site, alloc_block_units),
                     FIELD(Site, free_bytes), FIELD(Site, free_block_units),
                     FIELD(Site, peak_live_bytes), FIELD(Site, temporary_block_units),
                     FIELD(Site, node), FIELD(Site, kind), FIELD(Site, truncated),
                     FIELD(Site, reserved), FIELD(Site, ready), FIELD(Site, check)}));
  EXPECT_EQ(rows_of(*page, "LiveBucket"),
            rows_of({FIELD(LiveBucket, address), FIELD(LiveBucket, record)}));
  EXPECT_EQ(rows_of(*page, "LiveRecord"),
            rows_of({FIELD(LiveRecord, size_and_period), FIELD(LiveRecord, site),
                     FIELD(LiveRecord, epoch)}));
  EXPECT_EQ(rows_of(*page, "MapRange"), rows_of({FIELD(MapRange, begin), FIELD(MapRange, bytes),
                                                 FIELD(MapRange, site), FIELD(MapRange, epoch)}));
}

}  // namespace
}  // namespace tidemark::wire
