#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ends while threads allocate in native code: ending_threads.py NATIVE

The interpreter frees their states, and other blocks take the memory of these.
"""
import ctypes
import sys
import threading
import time

native = ctypes.CDLL(sys.argv[1])
library = ctypes.PyDLL(None)
malloc = library.malloc
malloc.restype = ctypes.c_void_p
malloc.argtypes = [ctypes.c_size_t]
fill = library.memset
fill.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]


def descend(depth):
    if depth > 1:
        return descend(depth - 1)
    native.allocate_for_ever()


class Last:
    # Names of the module are gone when this runs.
    def __del__(self, malloc=malloc, fill=fill, sizes=range(100, 1000, 8), sleep=time.sleep):
        for _ in range(30):
            for size in sizes:
                fill(malloc(size), 0x48, size)
        sleep(0.05)


def main():
    for _ in range(6):
        threading.Thread(target=descend, args=(40,), daemon=True).start()
    time.sleep(0.1)
    sys.last = Last()
    print("ends")


main()
