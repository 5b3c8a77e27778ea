#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: decoy_leaves_nothing.py TESTS_DIR

The training job beside which .ci/run tests leaves no process and no segment, whether it is told to
end or whoever started it is killed.
"""

import glob
import os
import signal
import subprocess
import sys
import time
import unittest

DECOY = os.path.join(sys.argv.pop(1), "programs", "train_decoy.py")
PATIENCE_S = 30


def segments_of(pid):
    return glob.glob(f"/dev/shm/torch_{pid}_*") + glob.glob(f"/dev/shm/psm_{pid:x}_*")


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


class Decoy(unittest.TestCase):
    def setUp(self):
        self.starter = subprocess.Popen(
            ["/bin/sh", "-c", '"$0" "$1" $$ & echo $!; wait', sys.executable, DECOY],
            stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.starter.stdout.close)
        self.addCleanup(self.starter.wait)
        self.addCleanup(self.starter.kill)
        self.pid = int(self.starter.stdout.readline())
        self.assertEqual(self.starter.stdout.readline(), "ready\n")
        with open(f"/proc/{self.pid}/task/{self.pid}/children") as children:
            self.workers = [int(pid) for pid in children.read().split()]
        self.assertEqual(len(self.workers), 2)
        self.assertTrue(wait_until(lambda: len(segments_of(self.pid)) >= 2))

    def expect_nothing_left(self):
        self.assertTrue(wait_until(lambda: not segments_of(self.pid)), segments_of(self.pid))
        for pid in [self.pid, *self.workers]:
            self.assertTrue(wait_until(lambda: not is_running(pid)), pid)

    def test_it_ends_when_it_is_told_to(self):
        os.kill(self.pid, signal.SIGTERM)
        self.expect_nothing_left()

    def test_it_ends_when_its_parent_is_killed(self):
        self.starter.kill()
        self.expect_nothing_left()


if __name__ == "__main__":
    unittest.main()
