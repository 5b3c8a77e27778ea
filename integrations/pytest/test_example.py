# SPDX-License-Identifier: Apache-2.0
"""Two loops, one of which keeps what it makes."""

import sys

import pytest

CALM = """
import time
for step in range(60):
    batch = bytearray(1 << 20)
    print("Step", step, flush=True)
    time.sleep(0.03)
"""
LEAKING = CALM.replace("for step", "kept = []\nfor step").replace("print", "kept.append(batch); print")


def test_a_calm_loop_does_not_leak(leak_check):
    leak_check([sys.executable, "-c", CALM], max_growth="500KiB/step", warmup="15steps",
               step_regex=r"Step +(\d+)", interval="50ms")


def test_a_leak_is_found(leak_check):
    with pytest.raises(pytest.fail.Exception, match=r"FAIL .*: max_growth: \S+ [KM]iB/step"):
        leak_check([sys.executable, "-c", LEAKING], max_growth="500KiB/step", warmup="15steps",
                   step_regex=r"Step +(\d+)", interval="50ms")
