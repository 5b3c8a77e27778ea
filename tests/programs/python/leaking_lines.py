#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Leaks in every way that Python code comes to run: leaking_lines.py TRUTH NATIVE [STEPS]

Each way has one line that leaks the same number of bytes in each step, and no two ways leak as much.
TRUTH, a file to write, gets them as JSON, the largest first; NATIVE is the path of native_calls.so.
"""
import asyncio
import ctypes
import gc
import json
import sys
import threading
import time

kept = []
native = None
ways = []


def way(source, line_text, file=None):
    """The decorated function leaks `bytes_per_step` at the line with this text."""

    def add(function):
        lines = source.split("\n")
        line = next(i for i, text in enumerate(lines, 1) if text.strip() == line_text)
        ways.append({"file": file or __file__, "line": line, "name": function.__name__, "run": function})
        return function

    return add


with open(__file__, encoding="utf-8") as this_file:
    own = this_file.read()


@way(own, "kept.append([bytearray(size) for size in (size // 2, size // 2)])")
def in_comprehension(size):
    kept.append([bytearray(size) for size in (size // 2, size // 2)])


@way(own, "native.keep_block(ctypes.c_size_t(size))")
def in_c_extension(size):
    native.keep_block(ctypes.c_size_t(size))


@way(own, "native.keep_block_in_thread(ctypes.c_size_t(size))")
def in_native_thread(size):
    native.keep_block_in_thread(ctypes.c_size_t(size))


@way(own, "kept.append(bytearray(size))  # in a callback")
def in_callback(size):
    def callback():
        kept.append(bytearray(size))  # in a callback

    native.call_back(ctypes.CFUNCTYPE(None)(callback))


def batches(size):
    while True:
        yield bytearray(size)


loader = None


@way(own, "yield bytearray(size)")
def in_generator(size):
    global loader
    loader = loader or batches(size)
    kept.append(next(loader))


@way(own, "kept.append(bytearray(size))  # in a thread")
def in_thread(size):
    def work():
        kept.append(bytearray(size))  # in a thread

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@way(own, "kept.append(bytearray(size))  # in a coroutine")
def in_coroutine(size):
    async def fetch():
        await asyncio.sleep(0)
        kept.append(bytearray(size))  # in a coroutine

    loop.run_until_complete(fetch())


def descend(depth, size):
    if depth > 1:
        return descend(depth - 1, size)
    kept.append(bytearray(size))  # in a recursion


@way(own, "kept.append(bytearray(size))  # in a recursion")
def in_recursion(size):
    descend(200, size)


# The two are compiled in each step and freed: one takes the memory of the other.
EVEN = "\n\nkept.append(bytearray(size))\n"
ODD = "\n\n\nkept.append(bytearray(size))\n"


@way(EVEN, "kept.append(bytearray(size))", "generated_even.py")
def in_generated_code(size):
    exec(compile(EVEN, "generated_even.py", "exec"), {"kept": kept, "size": size})


@way(ODD, "kept.append(bytearray(size))", "generated_odd.py")
def in_more_generated_code(size):
    exec(compile(ODD, "generated_odd.py", "exec"), {"kept": kept, "size": size})


class Name(str):
    pass


@way(EVEN, "kept.append(bytearray(size))", "generated_derived.py")
def in_code_of_a_derived_name(size):
    exec(compile(EVEN, Name("generated_derived.py"), "exec"), {"kept": kept, "size": size})


try:
    import numpy

    @way(own, "kept.append(numpy.zeros(size, dtype=numpy.uint8))")
    def in_numpy(size):
        kept.append(numpy.zeros(size, dtype=numpy.uint8))

except ImportError:
    pass


if __name__ == "__main__":
    native = ctypes.CDLL(sys.argv[2])
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 50
    loop = asyncio.new_event_loop()
    truth = []
    for number, leak in enumerate(ways):
        size = 8192 * (2 + len(ways) - number)
        leak["bytes_per_step"] = size
        truth.append({key: leak[key] for key in ("name", "file", "line", "bytes_per_step")})
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(truth, file)
    for step in range(1, steps + 1):
        for leak in ways:
            leak["run"](leak["bytes_per_step"])
        gc.collect()
        print(f"Step {step}", flush=True)
        time.sleep(0.02)
    loop.close()
