#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: tracer_chaos.py BUILD_DIR [SECONDS]

Eight threads open and close libraries, allocate and fork under the tracer, with both unwinders, for
30 seconds each. Ends with 1 when one of the runs does not end by itself or went wrong.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


def run(build, seconds, flags):
    folder = tempfile.mkdtemp(prefix="tidemark-chaos-")
    environment = dict(os.environ, LD_PRELOAD=str(build / "lib/libtidemark_tracer.so"),
                       TIDEMARK_TRACE=f"1:exact:0:0:{flags}:{folder}")
    try:
        done = subprocess.run(
            ["/usr/bin/timeout", "--kill-after=1", str(3 * seconds + 30),
             build / "tests/programs/traced_chaos", str(seconds), "0"],
            env=environment, capture_output=True, text=True, check=False)
        largest = max(entry.stat().st_size for entry in os.scandir(folder))
        files = len(os.listdir(folder))
    finally:
        shutil.rmtree(folder)
    good = done.returncode == 0 and not done.stderr
    name = "libunwind" if "u" in flags else "own unwinder"
    print(f"{'ok  ' if good else 'MISS'}  {name}, {seconds} s: {done.stdout.strip()}, {files} files, "
          f"largest {largest} bytes, status {done.returncode} {done.stderr.strip()}", flush=True)
    return good


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    results = [run(build, seconds, flags) for flags in ("f", "fu")]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
