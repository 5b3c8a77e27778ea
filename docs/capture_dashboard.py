#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: docs/capture_dashboard.py [BUILD_DIR] [SECONDS]

Runs the harness's leak with 20 compile workers below a wrapper, opens the dashboard on it in tmux,
and writes what is on the screen after that many seconds to docs/dashboard.svg, the picture in
README.md. Prints the same screen as text.
"""

import html
import pathlib
import re
import subprocess
import sys
import tempfile
import time

WIDTH, HEIGHT = 108, 30  # of the terminal, in characters
CELL_WIDTH, CELL_HEIGHT, MARGIN = 7.8, 16, 14  # of the picture, in pixels
FOREGROUND, BACKGROUND = "#d0d7de", "#0d1117"
PALETTE = ["#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4",
           "#6e7681", "#ffa198", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#f0f6fc"]
ESCAPE = re.compile(r"\x1b\[([0-9;:]*)m|\x1b[()].|[\x0e\x0f]")


def indexed_color(number):
    """One of the 256 colours of xterm."""
    if number < 16:
        return PALETTE[number]
    if number >= 232:
        return "#" + f"{8 + 10 * (number - 232):02x}" * 3
    levels = (0, 95, 135, 175, 215, 255)
    number -= 16
    return "#" + "".join(f"{levels[number // step % 6]:02x}" for step in (36, 6, 1))


class Style:
    """What the escape sequences so far have asked for."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.foreground, self.background = FOREGROUND, None
        self.bold = self.dim = self.reverse = False

    def apply(self, codes):
        numbers = [int(code or 0) for code in re.split("[;:]", codes)]
        while numbers:
            code = numbers.pop(0)
            if code == 0:
                self.reset()
            elif code == 1:
                self.bold = True
            elif code == 2:
                self.dim = True
            elif code == 22:
                self.bold = self.dim = False
            elif code in (7, 27):
                self.reverse = code == 7
            elif code in (38, 48):
                if numbers.pop(0) == 5:
                    color = indexed_color(numbers.pop(0))
                else:
                    color = "#" + "".join(f"{numbers.pop(0):02x}" for _ in range(3))
                if code == 38:
                    self.foreground = color
                else:
                    self.background = color
            elif code == 39:
                self.foreground = FOREGROUND
            elif code == 49:
                self.background = None
            elif 30 <= code % 60 <= 37 and code < 100:
                self.foreground = PALETTE[code % 60 - 30 + (8 if code >= 90 else 0)]
            elif 40 <= code % 60 <= 47:
                self.background = PALETTE[code % 60 - 40 + (8 if code >= 100 else 0)]

    def colors(self):
        if self.reverse:
            return self.background or BACKGROUND, self.foreground
        return self.foreground, self.background


def runs(line, style):
    """Stretches of one style: (column, text, style attributes, background)."""
    column, at = 0, 0
    for match in [*ESCAPE.finditer(line), None]:
        text = line[at:match.start() if match else len(line)]
        if text:
            foreground, background = style.colors()
            attributes = f' fill="{foreground}"' * (foreground != FOREGROUND)
            attributes += ' font-weight="bold"' * style.bold + ' opacity="0.6"' * style.dim
            yield column, text, attributes, background
            column += len(text)
        if match:
            at = match.end()
            if match.group(1) is not None:
                style.apply(match.group(1))


def svg(screen):
    """The screen of `tmux capture-pane -e` as a picture."""
    lines = screen.rstrip("\n").split("\n")
    width = WIDTH * CELL_WIDTH + 2 * MARGIN
    height = len(lines) * CELL_HEIGHT + 2 * MARGIN
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
           f'width="{width:g}" height="{height:g}" font-family="monospace" font-size="13" '
           f'fill="{FOREGROUND}" role="img" aria-label="the dashboard of tidemark monitor">',
           f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>']
    style = Style()
    for row, line in enumerate(lines):
        top = MARGIN + row * CELL_HEIGHT
        for column, text, attributes, background in runs(line, style):
            if background:
                out.append(f'<rect x="{MARGIN + column * CELL_WIDTH:.1f}" y="{top}" '
                           f'width="{len(text) * CELL_WIDTH:.1f}" height="{CELL_HEIGHT}" '
                           f'fill="{background}"/>')
            # Letters and drawing characters apart, each at its column: the fonts of a browser differ
            # in the width of braille dots and blocks.
            for word in re.finditer(r"[!-~]+(?: [!-~]+)*|[^\x00-\x7f]+", text):
                x = MARGIN + (column + word.start()) * CELL_WIDTH
                length = len(word.group()) * CELL_WIDTH
                out.append(f'<text x="{x:.1f}" y="{top + 12}" textLength="{length:.1f}" '
                           f'lengthAdjust="spacingAndGlyphs"{attributes}>'
                           f'{html.escape(word.group(), quote=False)}</text>')
    return "\n".join([*out, "</svg>", ""])


def capture(build, seconds):
    job = subprocess.Popen(
        [build / "bin/tidemark-harness", "train", "leak+compile-workers", "--wrapper",
         "--workers", "20", "--steps", "100000", "--step-time", "100ms", "--mb-per-step", "0.5",
         "--from-step", "250", "--eval-every", "100"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as folder:
        def tmux(*arguments):
            return subprocess.run(["tmux", "-f", "/dev/null", "-S", f"{folder}/tmux", *arguments],
                                  check=True, capture_output=True, text=True).stdout
        try:
            time.sleep(6)  # its workers are there
            tmux("-u", "new-session", "-d", "-x", str(WIDTH), "-y", str(HEIGHT),
                 "-e", "LC_ALL=C.UTF-8", "-e", "COLORTERM=truecolor", "-e", f"XDG_CACHE_HOME={folder}",
                 f"'{build}/bin/tidemark' monitor --pid {job.pid}; sleep 10")
            time.sleep(seconds)
            screens = tmux("capture-pane", "-p", "-e"), tmux("capture-pane", "-p")
            tmux("kill-server")
            return screens
        finally:
            job.terminate()
            job.wait()


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else root / "build/release").resolve()
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 90.0
    colored, plain = capture(build, seconds)
    (root / "docs/dashboard.svg").write_text(svg(colored))
    print("\n".join(line.rstrip() for line in plain.splitlines()))


if __name__ == "__main__":
    main()
