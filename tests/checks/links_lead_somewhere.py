#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on a link or picture in README.md, CONTRIBUTING.md or docs/ whose file or heading is gone.

usage: links_lead_somewhere.py SOURCE_DIR
"""

import pathlib
import re
import sys

LINK = re.compile(r'\]\(([^)\s]+)\)|<img src="([^"]+)"')


def anchors(page):
    """As GitHub makes them of headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            for heading in re.findall(r"^#+ +(.*?)\s*$", text, re.MULTILINE)}


def broken(source_dir):
    root = pathlib.Path(source_dir)
    for page in sorted([*root.glob("*.md"), *root.glob("docs/*.md")]):
        for match in LINK.finditer(page.read_text()):
            target = match.group(1) or match.group(2)
            if ":" in target:
                continue  # somebody else's page
            path, _, anchor = target.partition("#")
            other = page.parent / path if path else page
            name = page.relative_to(root).as_posix()
            if not other.exists():
                yield f"{name} links to {target}: there is no such file"
            elif anchor and anchor not in anchors(other):
                yield f"{name} links to {target}: there is no such heading"


def main():
    found = list(broken(sys.argv[1]))
    print("\n".join(found))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
