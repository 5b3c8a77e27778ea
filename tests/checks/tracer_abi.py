#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what a library shows to programs and needs of them with the golden files.

usage: tracer_abi.py LIBRARY GOLDEN_FOLDER NAME
"""
import os
import re
import subprocess
import sys


MOST_BSS_BYTES = 1_000_000


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exports(library):
    rows = [line.split() for line in run("nm", "-D", "--defined-only", library).splitlines()]
    return "".join(f"{row[-2]} {row[-1]}\n" for row in sorted(rows, key=lambda row: row[-1]))


def needs(library):
    """The libraries that are loaded with it, what of theirs it uses, and how it is linked."""
    dynamic = run("readelf", "-dW", library)
    lines = [f"needed {name}" for name in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)]
    for tag in ("TEXTREL", "RPATH", "RUNPATH", "SONAME"):
        if f"({tag})" in dynamic:
            lines.append(f"has {tag}")
    symbols = run("nm", "-D", "--undefined-only", library)
    for line in sorted(symbols.splitlines(), key=lambda line: line.split()[-1]):
        kind, name = line.split()[-2:]
        if name.split("@")[0] in ("memcmp", "memcpy", "memmove", "memset", "strlen"):
            continue  # as the compiler likes
        lines.append(f"{'weak' if kind == 'w' else 'uses'} {name.split('@')[0]}")
    return "".join(line + "\n" for line in lines)


def problems(library):
    """What no golden file may excuse."""
    for line in run("nm", "-C", library).splitlines():
        if re.search(r"__cxa_(throw|guard|atexit|thread_atexit|begin_catch)|std::|operator new", line):
            if "operators" not in library:
                yield f"the C++ runtime is used: {line}"
        if re.search(r"__tls_get_addr|_GLOBAL__sub_I", line):
            yield f"initialisers or dynamic thread storage: {line}"
    for size in re.findall(r" \.bss +NOBITS +\S+ +\S+ +(\S+)", run("readelf", "-SW", library)):
        if int(size, 16) >= MOST_BSS_BYTES:
            yield f"{int(size, 16)} bytes of .bss: each process would have them, and some lock them"
    for line in run("readelf", "-VW", library).splitlines():
        if "Version definition" in line:
            yield "the library defines symbol versions: its names would not interpose"


def main():
    library, folder, name = sys.argv[1:]
    failed = [f"{library}: {problem}" for problem in problems(library)]
    for what, text in (("exports", exports(library)), ("needed", needs(library))):
        path = os.path.join(folder, f"{name}_{what}.txt")
        wanted = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
        if text == wanted:
            continue
        if os.environ.get("TIDEMARK_UPDATE_GOLDEN") == "1":
            with open(path, "w", encoding="utf-8") as golden:
                golden.write(text)
        more = sorted(set(text.splitlines()) - set(wanted.splitlines()))
        fewer = sorted(set(wanted.splitlines()) - set(text.splitlines()))
        failed.append(f"{path} differs: new {more}, gone {fewer}")
    print("\n".join(failed) or "as expected")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
