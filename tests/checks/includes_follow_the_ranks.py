#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on an include against the ranks (a module sees itself and what is in its row, no more), and
where docs/architecture.md tells another story: its table differs, or it names a file that is gone.

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
    "monitor/procfs": {"common", "profiler/wire"},
    "profiler/tracer": {"profiler/wire"},
    "profiler/probe": {"profiler/wire"},
    "monitor": {"common", "api", "monitor/procfs"},
    "profiler/reader": {"common", "monitor/procfs", "profiler/wire"},
    "profiler/inject": {"common", "monitor/procfs", "profiler/wire"},
    "report": {"common", "recording", "tracker"},
    "profiler/collect": {"common", "monitor/procfs", "profiler/inject", "profiler/reader",
                         "profiler/wire"},
    "profiler/heap": {"common", "monitor/procfs", "profiler/inject", "profiler/reader",
                      "profiler/wire"},
    "live": {"common", "monitor", "monitor/procfs", "profiler/collect", "profiler/heap",
             "profiler/reader", "recording", "report", "tracker"},
    "guard": {"common", "live", "monitor", "monitor/procfs", "recording", "report", "tracker"},
    "check": {"common", "live", "monitor", "monitor/procfs", "profiler/collect", "recording",
              "report", "tracker"},
    "dashboard": {"common", "live", "monitor", "monitor/procfs", "profiler/collect", "recording",
                  "report", "tracker"},
    "trainer_harness": {"api", "common", "monitor/procfs"},
    "trainer_harness/demo": {"common", "live", "profiler/collect", "recording", "report",
                             "tracker"},
    "cli": {"check", "common", "dashboard", "guard", "live", "monitor", "profiler/collect",
            "recording", "report", "tracker", "trainer_harness/demo"},
}
# Third-party headers belong to one adapter each.
ADAPTERS = {
    "libproc2/": {"monitor/procfs/procps_source.cpp"},
    "pcre2.h": {"monitor/markers/step_pattern.cpp"},
    "elfutils/": {"profiler/inject/remote_stack.cpp", "profiler/reader/object_file.cpp"},
    "dwarf.h": {"profiler/reader/object_file.cpp"},
    "sqlite3.h": {"recording/sqlite.cpp"},
    "nlohmann/": {"recording/import/json_series.cpp", "check/config_file.cpp",
                  "trainer_harness/demo/truth.cpp", "trainer_harness/jobs/progress_line.cpp",
                  "dashboard/job_status.cpp"},
    "CLI/": {"cli/command.cpp", "trainer_harness/command_line.cpp"},
    "ftxui/": {"dashboard/dashboard_view.cpp", "dashboard/pane_views.cpp",
               "dashboard/timeline_plot.cpp", "dashboard/timeline_view.cpp",
               "dashboard/tree_view.cpp", "dashboard/views.h"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.MULTILINE)

# A row of the table in docs/architecture.md: | `folder/` | rank | holds | may include |
ROW = re.compile(r"^\| `([\w/]+)/` \| (\d) \| [^|]* \| ([^|]*) \|$", re.MULTILINE)


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


def page_errors(page, allowed=None):
    """Where the table of the page is not `allowed`, or contradicts its own ranks."""
    allowed = MAY_INCLUDE if allowed is None else allowed
    rows = {folder: (int(rank), set(re.findall("`([^`]+)`", modules)))
            for folder, rank, modules in ROW.findall(page)}
    for module in sorted(rows.keys() | allowed.keys()):
        if module not in rows:
            yield f"docs/architecture.md has no row for {module}"
        elif module not in allowed:
            yield f"docs/architecture.md has a row for {module}, the list of this check does not"
        elif rows[module][1] != allowed[module]:
            differing = ", ".join(sorted(rows[module][1] ^ allowed[module]))
            yield f"docs/architecture.md and this check differ in what {module} may see: {differing}"
        else:
            rank, others = rows[module]
            for other in sorted(others & rows.keys()):
                if rows[other][0] >= rank:
                    yield (f"docs/architecture.md: {module} (rank {rank}) may not see {other} "
                           f"(rank {rows[other][0]})")


def missing_paths(root, page):
    """What the page names in backticks as a file or folder of the project, and is not there."""
    root = pathlib.Path(root)
    for path in re.findall(r"`([\w.-]+/[\w./-]*)`", page):
        if (root / path.split("/")[0]).is_dir() and not (root / path).exists():
            yield f"docs/architecture.md names {path}, which is not there"


def main():
    page = (pathlib.Path(sys.argv[1]) / "docs/architecture.md").read_text()
    found = [*violations(sys.argv[1]), *page_errors(page), *missing_paths(sys.argv[1], page)]
    print("\n".join(found))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
