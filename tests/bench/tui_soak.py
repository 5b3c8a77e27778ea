#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: tui_soak.py BUILD_DIR [MINUTES] [SEED]

The dashboard over a leaking training job, full screen in tmux, under random keys, mouse events and
resizes (default 10 minutes). Now and then it is paused: what has come on the screen line by line must be
what it draws when it draws everything (ctrl-l). Fails when it dies, hangs, tears the screen, leaves
the terminal in another state than it found it, or takes more memory or time than it may.
"""

import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

from bars import Bars

KEYS = ["?", "x", "Space", "z", "s", "/", "c", "o", "Enter", "Escape", "Up", "Down", "Left", "Right",
        "Home", "End", "PageUp", "PageDown", "Tab", "j", "k", "h", "l", "g", "G", "m", "C-l",
        "BSpace", "é", "F5", "e", "w", "a", "K", "A", "D"]
SIZES = [(40, 12), (80, 24), (120, 40), (300, 100), (30, 8), (61, 17), (200, 50), (40, 100), (1, 1)]
RARE = "e"  # writes a file
# What changes parts of the screen, and says nothing that goes away by itself.
CALM_KEYS = ["z", "s", "Enter", "Up", "Down", "Left", "Right", "Home", "End", "Tab", "j", "k", "G", "a"]
LOOKED_AT = [(40, 12), (300, 100)]  # always; then others by chance


class Screen:
    def __init__(self, folder, command):
        self.socket = folder / "tmux"
        script = folder / "run.sh"
        script.write_text(f"cd '{folder}'\nstty -g > before\n{command}\necho $? > code\n"
                          "stty -g > after.new\nmv after.new after\nsleep 1000\n")
        self.tmux("-u", "new-session", "-d", "-x", "120", "-y", "40", "-e", "LC_ALL=C.UTF-8",
                  "-e", f"XDG_CACHE_HOME={folder}", f"exec sh '{script}'")

    def tmux(self, *arguments):
        return subprocess.run(["tmux", "-f", "/dev/null", "-S", self.socket, *arguments],
                              check=False, capture_output=True, text=True).stdout

    def resize(self, size):
        self.tmux("resize-window", "-x", str(size[0]), "-y", str(size[1]))

    def lines(self):
        return self.tmux("capture-pane", "-p").split("\n")[:-1]

    def with_colors(self):
        return cells_of(self.tmux("capture-pane", "-p", "-e").split("\n")[:-1])


ENDS_OF = {22: {1, 2}, 23: {3}, 24: {4}, 25: {5}, 27: {7}}  # what a code of attributes ends


class Pen:
    """How tmux says that characters look; there is more than one way to say the same."""

    def __init__(self):
        self.colors = {}
        self.attributes = frozenset()

    def take(self, codes):
        codes = [int(code or 0) for code in codes.split(";")]
        while codes:
            code = codes.pop(0)
            if code == 0:
                self.__init__()
            elif code in (38, 48):
                length = 2 if codes[:1] == [5] else 4
                self.colors[code // 10] = tuple(codes[:length])
                del codes[:length]
            elif code in (39, 49):
                self.colors.pop(code // 10, None)
            elif code in ENDS_OF:
                self.attributes -= ENDS_OF[code]
            elif code < 10:
                self.attributes |= {code}
            else:  # 30-37, 40-47, and the bright ones 90-97, 100-107
                self.colors[3 if code // 10 in (3, 9) else 4] = (code,)

    def draw(self, character):
        ink = self.colors.get(3) if character != " " else None
        return character, ink, self.colors.get(4), self.attributes


def cells_of(lines):
    """Each line as one sees it: characters with their looks, without the blanks at its end."""
    pen = Pen()
    blank = Pen().draw(" ")
    drawn = []
    for line in lines:
        cells = []
        for codes, character in re.findall("\x1b\\[([0-9;]*)m|(.)", line):
            if character:
                cells.append(pen.draw(character))
            else:
                pen.take(codes)
        while cells and cells[-1] == blank:
            cells.pop()
        drawn.append(cells)
    return drawn


def process_figures(pid):
    """CPU seconds and peak RSS in MiB."""
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(stat[11]) + int(stat[12])
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return ticks / os.sysconf("SC_CLK_TCK"), int(line.split()[1]) / 1024
    return 0.0, 0.0


def child_named(parent, name):
    found = subprocess.run(["pgrep", "-P", str(parent), "-x", name], capture_output=True, text=True,
                           check=False).stdout.split()
    return int(found[0]) if found else None


def do_something(screen, chance):
    kind = chance.random()
    if kind < 0.10:
        screen.resize(chance.choice(SIZES))
    elif kind < 0.20:
        mouse = f"\x1b[<{chance.choice([0, 64, 65])};{chance.randint(1, 120)};{chance.randint(1, 40)}M"
        screen.tmux("send-keys", "-H", *(f"{byte:02x}" for byte in mouse.encode()))
    else:
        keys = [key for key in chance.choices(KEYS, k=chance.randint(1, 12))
                if key != RARE or chance.random() < 0.02]
        screen.tmux("send-keys", *keys)


def wait_for(condition, seconds=15):
    """On a busy machine the screen takes a moment; what has not come by then does not come."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    return True


def back_to_the_plain_screen(screen):
    """Whatever state the keys have led to: out of the help, out of the filter."""
    for _ in range(2):
        screen.tmux("send-keys", "Escape")
        time.sleep(0.3)


def is_whole(lines, size):
    return (len(lines) == size[1] and all(len(line) <= size[0] for line in lines)
            and any("FOOTPRINT" in line for line in lines) and "? help" in lines[-1])


def stands_still(screen, size):
    """Paused, and without a message, which would go away by itself."""
    lines = screen.lines()
    return is_whole(lines, size) and "PAUSED" in lines[-1]


def pause(screen, size):
    if not wait_for(lambda: is_whole(screen.lines(), size)):
        return False
    if "PAUSED" not in screen.lines()[-1]:
        screen.tmux("send-keys", "Space")
    if not wait_for(lambda: stands_still(screen, size)):
        return False
    time.sleep(0.5)  # the rest of a frame
    return True


def differing_lines(painted, drawn_again):
    return [f"line {y + 1}:\n  {a!r}\n  {b!r}" for y, (a, b) in enumerate(zip(painted, drawn_again))
            if a != b]


def is_torn(screen, size, chance):
    """Draws line by line at this size for a while, stands still, and is then drawn as a whole. The
    resize itself draws everything; so keys and samples have to come after it."""
    back_to_the_plain_screen(screen)
    screen.resize(size)
    if not pause(screen, size):  # no more keys that were meant for the random state are on the way
        print("\n".join([f"no whole screen at {size}:", *screen.lines()]), file=sys.stderr)
        return True
    screen.tmux("send-keys", "Space")
    for _ in range(12):
        screen.tmux("send-keys", chance.choice(CALM_KEYS))
        time.sleep(0.15)
    time.sleep(1.5)
    if not pause(screen, size):
        print("\n".join([f"no still screen at {size}:", *screen.lines()]), file=sys.stderr)
        return True
    painted = screen.with_colors()
    screen.tmux("send-keys", "C-l")
    time.sleep(1)
    different = differing_lines(painted, screen.with_colors())
    screen.tmux("send-keys", "Space")
    if different:
        print("\n".join([f"torn at {size}, as it was and as it should be:", *different]),
              file=sys.stderr)
    return bool(different)


def sizes_to_look_at(chance):
    yield from LOOKED_AT
    while True:
        yield chance.choice([size for size in SIZES if size[0] >= 40 and size[1] >= 12])


def soak(screen, pid, minutes, chance):
    """How often the screen was looked at, and how often it was not as it should be."""
    looks = 0
    torn = 0
    end = time.monotonic() + minutes * 60
    next_look = time.monotonic() + 5
    sizes = sizes_to_look_at(chance)
    while time.monotonic() < end and pathlib.Path(f"/proc/{pid}").exists():
        do_something(screen, chance)
        time.sleep(chance.random() * 0.1)
        if time.monotonic() >= next_look:
            looks += 1
            torn += is_torn(screen, next(sizes), chance)
            next_look = time.monotonic() + 5
    return looks, torn


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    minutes = float(sys.argv[2]) if len(sys.argv) > 2 else 10.0
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else int(time.time())
    print(f"seed {seed}, {minutes:g} minutes", flush=True)
    bars = Bars()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        steps = int(minutes * 60 * 10) + 600
        job = subprocess.Popen([build / "bin/tidemark-harness", "train", "leak+compile-workers",
                                "--wrapper", "--workers", "20", "--steps", str(steps), "--step-time",
                                "100ms", "--mb", "300"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        screen = None
        try:
            time.sleep(5)
            screen = Screen(folder, f"'{build}/bin/tidemark' monitor --pid {job.pid} "
                                    "-o run.tidemark")
            time.sleep(3)
            shell = int(screen.tmux("display-message", "-p", "#{pane_pid}"))
            pid = child_named(shell, "tidemark")
            looks, torn = soak(screen, pid, minutes, random.Random(seed))
            alive = pathlib.Path(f"/proc/{pid}").exists()
            cpu_s, peak_mib = process_figures(pid) if alive else (0.0, 0.0)
            back_to_the_plain_screen(screen)
            screen.tmux("send-keys", "q")
            wait_for((folder / "after").exists)
            code = (folder / "code").read_text().strip() if (folder / "code").exists() else "none"
            restored = ((folder / "after").exists()
                        and (folder / "before").read_text() == (folder / "after").read_text())
        finally:
            job.terminate()
            job.wait()
            if screen:
                screen.tmux("kill-server")
    bars.report("the dashboard died", 0 if alive and code == "0" else 1, 0, detail=f"exit {code}")
    bars.report("screens that were torn", torn, 0, detail=f"of {looks}")
    bars.report("terminal not restored", 0 if restored else 1, 0)
    bars.report("memory at its peak", peak_mib, 60, " MiB")
    bars.report("share of a core, sampling and 10 keys a second included",
                cpu_s / (minutes * 60) * 100, 10, " %")
    sys.exit(1 if bars.missed else 0)


if __name__ == "__main__":
    main()
