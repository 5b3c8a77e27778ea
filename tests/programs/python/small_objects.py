#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps small objects, which Python puts into arenas of its own: small_objects.py [STEPS]"""
import sys
import time

kept = None


def keep():
    global kept
    for _ in range(6000):
        kept = (kept,)  # leaks


for step in range(1, (int(sys.argv[1]) if len(sys.argv) > 1 else 50) + 1):
    keep()
    print(f"Step {step}", flush=True)
    time.sleep(0.02)
