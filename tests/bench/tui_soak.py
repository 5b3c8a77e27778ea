#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: tui_soak.py BUILD_DIR [MINUTES] [SEED]

The dashboard over a leaking training job, full screen in tmux, under random keys, mouse events and
resizes (default 10 minutes). Fails when it dies, hangs, tears the screen, leaves the terminal in
another state than it found it, or takes more memory or time than it may.
"""

import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

from bars import Bars

KEYS = ["?", "x", "Space", "z", "s", "/", "c", "o", "Enter", "Escape", "Up", "Down", "Left", "Right",
        "Home", "End", "PageUp", "PageDown", "Tab", "j", "k", "h", "l", "g", "G", "m", "C-l",
        "BSpace", "é", "F5", "e"]
SIZES = [(40, 12), (80, 24), (120, 40), (300, 100), (30, 8), (61, 17), (200, 50), (40, 100), (1, 1)]
RARE = "e"  # writes a file


class Screen:
    def __init__(self, folder, command):
        self.socket = folder / "tmux"
        script = folder / "run.sh"
        script.write_text(f"cd '{folder}'\nstty -g > before\n{command}\necho $? > code\n"
                          "stty -g > after\nsleep 1000\n")
        self.tmux("-u", "new-session", "-d", "-x", "120", "-y", "40", "-e", "LC_ALL=C.UTF-8",
                  f"exec sh '{script}'")

    def tmux(self, *arguments):
        return subprocess.run(["tmux", "-f", "/dev/null", "-S", self.socket, *arguments],
                              check=False, capture_output=True, text=True).stdout

    def lines(self):
        return self.tmux("capture-pane", "-p").split("\n")[:-1]


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
        width, height = chance.choice(SIZES)
        screen.tmux("resize-window", "-x", str(width), "-y", str(height))
    elif kind < 0.20:
        mouse = f"\x1b[<{chance.choice([0, 64, 65])};{chance.randint(1, 120)};{chance.randint(1, 40)}M"
        screen.tmux("send-keys", "-H", *(f"{byte:02x}" for byte in mouse.encode()))
    else:
        keys = [key for key in chance.choices(KEYS, k=chance.randint(1, 12))
                if key != RARE or chance.random() < 0.02]
        screen.tmux("send-keys", *keys)


def looks_whole(lines):
    text = "\n".join(lines)
    return (len(lines) == 40 and "footprint of the tree" in text and "FOOTPRINT" in text
            and all(len(line) <= 120 for line in lines))


def settle(screen):
    """Whatever state the keys have led to, back to a plain screen of a known size. On a busy machine
    that takes a moment; a screen that does not come whole by then stays torn."""
    screen.tmux("resize-window", "-x", "120", "-y", "40")
    screen.tmux("send-keys", "Escape")
    time.sleep(0.3)
    screen.tmux("send-keys", "Escape", "C-l")
    lines = []
    for _ in range(10):
        time.sleep(0.5)
        lines = screen.lines()
        if looks_whole(lines):
            break
    return lines


def soak(screen, pid, minutes, chance):
    """The number of times that the screen did not look as it should."""
    torn = 0
    end = time.monotonic() + minutes * 60
    next_look = time.monotonic() + 10
    while time.monotonic() < end and pathlib.Path(f"/proc/{pid}").exists():
        do_something(screen, chance)
        time.sleep(chance.random() * 0.1)
        if time.monotonic() >= next_look:
            lines = settle(screen)
            if not looks_whole(lines):
                torn += 1
                print("\n".join(lines), file=sys.stderr)
            next_look = time.monotonic() + 10
    return torn


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
            torn = soak(screen, pid, minutes, random.Random(seed))
            alive = pathlib.Path(f"/proc/{pid}").exists()
            cpu_s, peak_mib = process_figures(pid) if alive else (0.0, 0.0)
            settle(screen)
            screen.tmux("send-keys", "q")
            time.sleep(2)
            code = (folder / "code").read_text().strip() if (folder / "code").exists() else "none"
            restored = ((folder / "after").exists()
                        and (folder / "before").read_text() == (folder / "after").read_text())
        finally:
            job.terminate()
            job.wait()
            if screen:
                screen.tmux("kill-server")
    bars.report("the dashboard died", 0 if alive and code == "0" else 1, 0, detail=f"exit {code}")
    bars.report("screens that were torn", torn, 0)
    bars.report("terminal not restored", 0 if restored else 1, 0)
    bars.report("memory at its peak", peak_mib, 60, " MiB")
    bars.report("share of a core, sampling and 10 keys a second included",
                cpu_s / (minutes * 60) * 100, 10, " %")
    sys.exit(1 if bars.missed else 0)


if __name__ == "__main__":
    main()
