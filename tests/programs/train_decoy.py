#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: train_decoy.py PARENT_PID

A neighbour on the machine: it looks like a training job with two DataLoader workers and leaks in
/dev/shm. Tests must give the same answers beside it.

It costs next to nothing: four segments a second, half of them named as torch names them, half as
multiprocessing does. One in three stays mapped; the others, which nobody holds, grow to 43 MiB before
all are removed. It ends and takes everything with it on SIGTERM and when its parent exits, however
that happens.
"""

import ctypes
import mmap
import os
import signal
import sys
import time

SEGMENT_BYTES = 512 * 1024
MOST_SEGMENTS = 128
INTERVAL_S = 0.25
PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15

LIBC = ctypes.CDLL(None)
is_told_to_stop = False


def stop(*_):
    global is_told_to_stop
    is_told_to_stop = True


def end_with(parent, number):
    LIBC.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(1)


def start_worker():
    trainer = os.getpid()
    if os.fork() == 0:
        end_with(trainer, signal.SIGKILL)
        LIBC.prctl(PR_SET_NAME, b"pt_data_worker", 0, 0, 0)
        while True:
            signal.pause()


def make_segment(number):
    """Its path, and what keeps it mapped, if anything does."""
    name = f"torch_{os.getpid()}_{number}_0" if number % 2 else f"psm_{os.getpid():x}_{number}"
    path = "/dev/shm/" + name
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.posix_fallocate(fd, 0, SEGMENT_BYTES)
    mapping = mmap.mmap(fd, SEGMENT_BYTES) if number % 3 == 0 else None
    os.close(fd)
    return path, mapping


def remove(segments):
    while segments:
        path, _ = segments.pop()
        os.unlink(path)


def main():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    end_with(int(sys.argv[1]), signal.SIGTERM)
    for _ in range(2):
        start_worker()
    print("ready", flush=True)
    segments = []
    number = 0
    while not is_told_to_stop:
        segments.append(make_segment(number))
        number += 1
        if len(segments) == MOST_SEGMENTS:
            remove(segments)
        time.sleep(INTERVAL_S)
    remove(segments)


if __name__ == "__main__":
    main()
