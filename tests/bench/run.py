#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: run.py BUILD_DIR

Measures the monitor against its peers, interleaved in one run, and prints ratios with their bars;
and the tracker against the clock.
Exits with 1 when a bar is missed.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import platform
import pty
import re
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

from bars import Bars

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"  # the one that has psutil
ROUNDS = 10


@contextlib.contextmanager
def training_tree(build, *options):
    """A process tree of real memory; yields its first pid."""
    process = subprocess.Popen(
        [build / "tests/programs/training_tree", "--seconds", "0", *map(str, options)],
        stdout=subprocess.PIPE, text=True)
    try:
        json.loads(process.stdout.readline())  # it prints the truth once everybody is ready
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def number_from(command):
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def median_and_spread(values):
    return statistics.median(values), f"{min(values):.0f}..{max(values):.0f} us"


def bench_sample_against_psutil(build, bars):
    ours, psutil = [], []
    with training_tree(build, "--workers", 19, "--dataloaders", 4, "--worker-mb", 4) as pid:
        for _ in range(ROUNDS):
            ours.append(number_from([build / "tests/bench/sampler_cost", str(pid), "status", "50"]))
            psutil.append(number_from([PYTHON, HERE / "psutil_pass.py", str(pid), "50"]))
    us, us_spread = median_and_spread(ours)
    peer, peer_spread = median_and_spread(psutil)
    bars.report("one sample of a 25-process tree, full split, CPU against psutil's RSS pass",
                us / peer, 1 / 6,
                detail=f"{us:.0f} us ({us_spread}) against {peer:.0f} us ({peer_spread})")


def bench_pss_pass(build, bars):
    with training_tree(build, "--workers", 19, "--dataloaders", 4, "--worker-mb", 20) as pid:
        ratios = [number_from([build / "tests/bench/sampler_cost", str(pid), "pss-ratio", "20"])
                  for _ in range(ROUNDS)]
    bars.report("a PSS pass against the bare smaps_rollup reads", statistics.median(ratios), 1.1,
                detail=f"{min(ratios):.2f}..{max(ratios):.2f}")


def bench_shm_pass(build, bars):
    """Who holds a segment that nobody holds: all processes have to be searched."""
    sleepers = [subprocess.Popen(["sleep", "600"]) for _ in range(1000)]
    segment = pathlib.Path(f"/dev/shm/tidemark_bench_{os.getpid()}")
    segment.write_bytes(b"x" * 4096)
    try:
        time.sleep(1)
        first, later = map(float, subprocess.run(
            [build / "tests/bench/shm_cost", str(ROUNDS)],
            check=True, capture_output=True, text=True).stdout.split())
    finally:
        segment.unlink()
        for sleeper in sleepers:
            sleeper.kill()
        for sleeper in sleepers:
            sleeper.wait()
    bars.report("a pass over /dev/shm and 1,000 sleeping processes, CPU against the first one",
                later / first, 0.4, detail=f"{later:.1f} ms against {first:.1f} ms")


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mib(pid, key="VmRSS"):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"{key}:\s+(\d+)", status).group(1)) / 1024


def cost_of(pid):
    """Share of a core in per cent over half a minute, and peak memory, of a tool that has just begun."""
    time.sleep(8)  # the first passes are a start-up cost
    before, since = cpu_seconds(pid), time.monotonic()
    time.sleep(30)
    share = (cpu_seconds(pid) - before) / (time.monotonic() - since)
    return 100 * share, rss_mib(pid, "VmHWM")


def cost_of_watching(build, pid, *options):
    """The same of watching at 1 Hz, in lines."""
    tool = subprocess.Popen([build / "bin/tidemark", "monitor", "--pid", str(pid), *options],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return cost_of(tool.pid)
    finally:
        tool.terminate()
        tool.wait()


def read_to_the_end(terminal, sizes):
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # EIO: nobody has the other side any more
            return
        sizes.append(len(data))


def cost_of_the_dashboard(build, pid, cache, *options):
    """The same of the dashboard on a terminal of 120x40, which keeps its run in the folder `cache`;
    and the bytes that it has sent to the terminal."""
    tool, terminal = pty.fork()
    if tool == 0:
        os.environ.update(TERM="xterm", LC_ALL="C.UTF-8", XDG_CACHE_HOME=cache)
        os.execv(build / "bin/tidemark", ["tidemark", "monitor", "--pid", str(pid), *options])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    sizes = []
    reader = threading.Thread(target=read_to_the_end, args=(terminal, sizes))
    reader.start()
    try:
        return *cost_of(tool), sum(sizes)
    finally:
        os.kill(tool, signal.SIGTERM)
        os.waitpid(tool, 0)
        reader.join()
        os.close(terminal)


def bench_thousand_processes(build, bars):
    with training_tree(build, "--workers", 994, "--dataloaders", 4, "--worker-mb", 0.1,
                       "--shared-mb", 4) as pid, \
            tempfile.TemporaryDirectory() as folder:
        plain, _ = cost_of_watching(build, pid)
        recording, memory = cost_of_watching(build, pid, "-o", f"{folder}/run.tidemark")
        if has_dashboard(build):
            drawn, screen_memory, sent = cost_of_the_dashboard(build, pid, folder)
    bars.report("a 1,000-process tree at 1 Hz, share of a core", plain, 3, " %",
                detail=f"{recording:.3g} % with a recording")
    bars.report("memory of the tool meanwhile, recording", memory, 30, " MiB")
    if has_dashboard(build):
        bars.report("the same tree in the dashboard, the whole program, share of a core", drawn, 3, " %",
                    detail=f"{drawn - plain:+.2g} % against lines; {sent / 1024:.0f} KiB sent")
        bars.report("memory of that", screen_memory, 60, " MiB")


def has_dashboard(build):
    return (build / "tests/bench/dashboard_cost").exists()


def bench_dashboard(build, bars):
    if not has_dashboard(build):
        print("--    the dashboard: not built")
        return
    out = subprocess.run([build / "tests/bench/dashboard_cost", "1000", "7", "300", "100"], check=True, capture_output=True,
                         text=True).stdout
    result = json.loads(out)
    bars.report("what the dashboard does for 1,000 processes after a week, share of a core",
                100 * result["core_share"], 3, " %",
                detail=f"{result['draw_ms']} ms a frame of 300x100, {result['judge_ms']} ms a verdict")
    bars.report("memory of that", result["peak_rss_mib"], 60, " MiB")


def bench_long_run(build, bars):
    with training_tree(build, "--workers", 4, "--dataloaders", 2) as pid:
        # Caches of bounded size are not full after 10,000 ticks yet.
        out = subprocess.run([build / "tests/bench/long_run", str(pid), "300000"], check=True,
                             capture_output=True, text=True).stdout
    result = json.loads(out)
    bars.report("memory of the tool after 300,000 ticks", result["rss_end_mib"], 30, " MiB")
    bars.report("growth from 30,000 to 300,000 ticks",
                result["rss_end_mib"] - result["rss_early_mib"], 0.5, " MiB")


def bench_series(build, bars):
    def seconds(what, samples):
        return number_from([build / "tests/bench/series_cost", what, str(samples)])

    for what, label in (("judge", "judging"), ("parse", "reading from CSV")):
        million = statistics.median(seconds(what, 1_000_000) for _ in range(3))
        bars.report(f"{label} 1,000,000 samples", million, 0.2, " s")
        bars.report(f"{label} ten times as many, against ten times that",
                    seconds(what, 10_000_000) / (10 * million), 1.3)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    bars = Bars()
    print(f"{platform.release()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}; "
          f"medians of {ROUNDS} interleaved rounds")
    bench_series(build, bars)
    bench_sample_against_psutil(build, bars)
    bench_pss_pass(build, bars)
    bench_shm_pass(build, bars)
    bench_thousand_processes(build, bars)
    bench_long_run(build, bars)
    bench_dashboard(build, bars)
    sys.exit(1 if bars.missed else 0)


if __name__ == "__main__":
    main()
