#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on an include against the ranks: a module sees itself and what stands in its row, no more.

usage: includes_follow_the_ranks.py SOURCE_DIR
"""

import pathlib
import re
import sys

# Longest prefix wins. A row allows what the module may include besides itself.
MAY_INCLUDE = {
    "common": set(),
    "api": set(),
    "profiler/wire": set(),
    "recording": {"common"},
    "tracker": {"common"},
    "monitor": {"common", "api"},
    "monitor/tui": {"common", "monitor", "recording", "tracker"},
    "profiler/reader": {"common", "profiler/wire"},
    "profiler/inject": {"common"},
    "profiler/tracer": {"profiler/wire"},
    "trainer_harness": {"api", "common"},
    "cli": {"common", "api", "recording", "tracker", "monitor", "monitor/tui", "profiler/reader",
            "profiler/inject", "profiler/wire"},
}
# Third-party headers belong to one adapter each.
ADAPTERS = {
    "libproc2/": {"monitor/procps_source.cpp"},
    "elfutils/": {"profiler/reader/object_file.cpp"},
    "dwarf.h": {"profiler/reader/object_file.cpp"},
    "sqlite3.h": {"recording/sqlite.cpp"},
    "nlohmann/": {"recording/import/json_series.cpp", "cli/check_files.cpp",
                  "cli/demo_truth.cpp", "cli/job_status.cpp"},
    "CLI/": {"cli/command_line.cpp", "cli/command_line_check.cpp"},
    "ftxui/": {"monitor/tui/banner_view.cpp", "monitor/tui/dashboard_view.cpp",
               "monitor/tui/pane_views.cpp", "monitor/tui/phase_line.cpp",
               "monitor/tui/style.cpp", "monitor/tui/style.h", "monitor/tui/timeline_view.cpp",
               "monitor/tui/tree_view.cpp", "monitor/tui/views.h"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.MULTILINE)


def module_of(path):
    matches = [m for m in MAY_INCLUDE if path == m or path.startswith(m + "/")]
    return max(matches, key=len, default=None)


def violations(source_dir):
    root = pathlib.Path(source_dir)
    for top in sorted({m.split("/")[0] for m in MAY_INCLUDE}):
        for file in sorted(root.glob(f"{top}/**/*")):
            if file.suffix not in {".h", ".cpp", ".c"}:
                continue
            name = file.relative_to(root).as_posix()
            module = module_of(name)
            for _, target in INCLUDE.findall(file.read_text()):
                if ".." in target.split("/"):
                    yield f"{name} includes {target}: say where it is from the root of the project"
                other = module_of(target)
                if other and other != module and other not in MAY_INCLUDE[module]:
                    yield f"{name} includes {target}: {module} may not see {other}"
                for prefix, adapters in ADAPTERS.items():
                    if target.startswith(prefix) and name not in adapters:
                        yield f"{name} includes {target}: only {', '.join(sorted(adapters))} may"


def main():
    found = list(violations(sys.argv[1]))
    print("\n".join(found))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
