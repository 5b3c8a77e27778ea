#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: docs/capture_dashboard.py [BUILD_DIR] [SECONDS]

Runs the harness's leak with 20 compile workers below a wrapper, opens the dashboard on it in tmux,
and prints what is on the screen after that many seconds: the picture in README.md.
"""

import pathlib
import subprocess
import sys
import tempfile
import time

WIDTH, HEIGHT = 108, 30


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else root / "build/release").resolve()
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 90.0
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
                 "-e", "LC_ALL=C.UTF-8",
                 f"'{build}/bin/tidemark' monitor --pid {job.pid}; sleep 10")
            time.sleep(seconds)
            print("\n".join(line.rstrip() for line in tmux("capture-pane", "-p").splitlines()))
            tmux("kill-server")
        finally:
            job.terminate()
            job.wait()


if __name__ == "__main__":
    main()
