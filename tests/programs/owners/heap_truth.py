#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes down all objects of its own heap and what they refer to: heap_truth.py FILE [--objects N]
[--torch TENSORS]

Then it prints "ready" and waits, without a change to its heap, until its standard input is closed.
With --objects it has some N objects more. Python 3.9 and later.

FILE, of 64-bit words in the order of bytes of the machine, has what `gc`, `type` and `sys.getsizeof`
say:

  header    0x31534a424f4d4454 ("TDMOBJS1"), the hexadecimal version (sys.hexversion), the number of
            objects, of references, of types, of bytes of names, and the flags of the interpreter
            (1: free-threaded)
  objects   for each: address, address of its type, sys.getsizeof, flags | number of references << 8.
            Flags: 1: the collector tracks it (it is one of gc.get_objects()); 2: it changes while the
            program waits, its references do not count
  references for each object, in this order: the addresses of what it refers to (gc.get_referents),
            with repetitions
  types     for each: address, the offset of its name, the length of its name
  names     UTF-8: tp_name as type.__module__ + "." + type.__qualname__, "builtins." left out; filled
            up to whole words with zeros

All objects that tracked ones lead to are there. Those that only exist while this is written are not.

TENSORS, one JSON document: "tensors", for each of Python's and of those that nodes of a graph have
saved: "object" (address; null: Python has none), "storage" (address of the StorageImpl),
"storage_bytes", "data" (data_ptr of the storage), "shape", "dtype", "device", "requires_grad",
"is_leaf", "node" (class of the grad_fn or null); "nodes": for each node of a graph its class.
"""

import argparse
import array
import asyncio
import collections
import contextvars
import dataclasses
import enum
import functools
import gc
import itertools
import os
import re
import sys
import sysconfig
import threading
import types
import weakref

MAGIC = 0x31534A424F4D4454
TRACKED = 1
CHANGES = 2


class Plain:
    def __init__(self, number):
        self.number = number
        self.name = f"plain {number}"
        self.others = [number]


class WithSlots:
    __slots__ = ("first", "second", "__weakref__")

    def __init__(self, first):
        self.first = first


class SlotsAndDict(WithSlots):
    def __init__(self, first):
        super().__init__(first)
        self.third = (first, "third")


class Many(dict):
    """With attributes beside its items."""


class Listed(list):
    pass


class Tupled(tuple):
    pass


class Numbered(int):
    pass


class Meta(type):
    registry = []


class Made(metaclass=Meta):
    made = {"by": "a metaclass"}


class Colour(enum.Enum):
    RED = "red"
    BLUE = 2


@dataclasses.dataclass
class Point:
    x: float
    y: float
    tags: list = dataclasses.field(default_factory=list)


Pair = collections.namedtuple("Pair", "left right")
variable = contextvars.ContextVar("variable", default=["default"])
context = contextvars.copy_context()
local = threading.local()


@functools.lru_cache(maxsize=64)
def bounded(key):
    return [key]


@functools.lru_cache(maxsize=None)
def unbounded(key, other=None):
    return {"key": key, "other": other}


def closure_over(value):
    hidden = {"value": value}

    def inner(more=[], *, keyword={}):
        return hidden, value, more, keyword

    inner.attribute = ["of a function"]
    return inner


def generate(count):
    kept = [f"generated {i}" for i in range(count)]
    for each in kept:
        yield each


async def coroutine(value):
    await asyncio.sleep(value)


async def generate_async(count):
    for each in range(count):
        yield each


def failure(depth):
    payload = ["payload", depth]
    if depth == 0:
        raise ValueError("at the bottom", payload)
    try:
        failure(depth - 1)
    except ValueError as error:
        raise KeyError(depth) from error


def strings():
    return ["", "a", "ascii", "\xe9t\xe9", "\u03b1\u03b2\u03b3", "\U0001f30a wave", "x" * 10_000,
            "\u20ac" * 1000, "".join(["interned", " not"]), sys.intern("interned text")]


def numbers():
    return [0, 1, -1, 255, 1 << 29, 1 << 30, -(1 << 31), 1 << 62, 1 << 1000, 0.0, 1.5, float("nan"),
            3 + 4j, True, None, Ellipsis, NotImplemented, range(0), range(5, 1 << 40, 3)]


def buffers():
    growing = bytearray(b"growing")
    growing.extend(range(200))
    return [b"", b"b", b"bytes" * 300, bytearray(), growing, memoryview(b"view")[1:],
            memoryview(bytearray(64)), array.array("d", range(100)), array.array("b")]


def containers():
    deleted = {i: [i] for i in range(100)}
    for i in range(0, 100, 3):
        del deleted[i]
    turning = collections.deque(range(200), maxlen=150)
    turning.rotate(7)
    many = Many(a=[1])
    many.attribute = {"b": [2]}
    cycle = ["cycle"]
    cycle.append(cycle)
    numbered = Numbered(1 << 70)
    numbered.note = ["of a number"]
    return [[], [1], list(range(1000)), (), (1, "two", [3]), {}, {"key": "value"}, {1: [1], "s": {2}},
            {i: (i, [i]) for i in range(1000)}, dict.fromkeys(map(str, range(300))), deleted, set(),
            {1, "two", (3,)}, set(range(1000)), frozenset("frozen"), turning, collections.deque(),
            collections.OrderedDict(a=[1], b=[2]), collections.defaultdict(list, {"k": [1]}),
            collections.Counter("counter"), collections.ChainMap({"a": 1}, {"b": 2}), many,
            Listed([1, [2]]), Tupled((1, [2])), numbered, cycle,
            types.SimpleNamespace(a=[1]), types.MappingProxyType({"m": [1]})]


def instances():
    plain = [Plain(i) for i in range(50)]
    for each in plain[::5]:
        each.late = {"late": each}  # a dictionary that does not share its keys, or has more of them
    for each in plain[::7]:
        vars(each)  # Python 3.12 and later: makes the dictionary itself
    for each in plain[1::7]:
        del each.name
    both = SlotsAndDict([1])
    both.second = both
    return [*plain, WithSlots([1]), both, Made(), Meta, Made, Colour.RED, Point(1.0, 2.0, ["tag"]),
            Pair([1], {"2": 3}), object(), Plain]


def callables():
    plain = Plain(0)
    return [closure_over([1]), lambda argument, default=[1]: (argument, default), plain.__init__,
            [].append, functools.partial(closure_over, [2], key=[3]), property(closure_over),
            staticmethod(closure_over), classmethod(closure_over), bounded, unbounded, len, str.join,
            functools.singledispatch(closure_over), closure_over.__code__]


def iterators():
    suspended = generate(10)
    next(suspended)
    ended = generate(1)
    list(ended)
    waiting = coroutine(1)
    running = generate_async(3)
    split = itertools.tee(iter([1, 2, 3]))
    return [suspended, generate(3), ended, waiting, running, split, iter([1, 2]), iter({1: 2}.items()),
            enumerate(["a"]), zip([1], [2]), map(str, [1]), filter(None, [1]), reversed([1]),
            itertools.chain([1], [2]), itertools.count(5), itertools.cycle([[1]]), slice(1, [2]),
            itertools.product([1], [2])]


def failures():
    try:
        failure(3)
    except KeyError as error:
        kept = error
    plain = ValueError("not raised", [1])
    plain.note = {"a": "note"}
    return [kept, plain, OSError(2, "name"), StopIteration([1]), kept.__traceback__]


def references():
    target = Plain(1)
    names = weakref.WeakValueDictionary({"target": target})
    keys = weakref.WeakKeyDictionary({target: ["value"]})
    return [target, names, keys, weakref.ref(target, closure_over([1])), weakref.proxy(target),
            weakref.WeakSet([target]), weakref.finalize(target, print, [1])]


def others():
    loop = asyncio.new_event_loop()
    variable.set(["set"])
    context.run(variable.set, ["in another context"])
    match = re.match(r"(?P<name>\w+)", "matched text")
    return [loop, loop.create_future(), context, variable, match, match.re, threading.Lock(),
            threading.RLock(), threading.Event(), contextvars.copy_context(), types.ModuleType("made"),
            open(os.devnull, "rb"), open(os.devnull, encoding="utf-8")]


def wait_in_thread(started):
    held = {"held": ["by a thread"]}
    local.own = ["of a thread", held]
    started.set()
    threading.Event().wait()


def make_objects(count):
    for i in range(200):
        bounded(i)
        unbounded(i, other=str(i))
    local.own = ["of the main thread"]
    kept = [strings(), numbers(), buffers(), containers(), instances(), callables(), iterators(),
            failures(), references(), others()]
    per_row = 8
    kept.append([{"row": i, "cells": [float(i + j) for j in range(4)], "pair": (i, str(i))}
                 for i in range(count // per_row)])
    started = threading.Event()
    threading.Thread(target=wait_in_thread, args=(started,), daemon=True).start()
    started.wait()
    return kept


def name_of(each):
    if each.__module__ in ("builtins", None):
        return str(each.__qualname__)
    return f"{each.__module__}.{each.__qualname__}"


def write_objects(path):
    """Without an object that stays."""
    objects = gc.get_objects()
    tracked = len(objects)
    seen = set(map(id, objects))
    seen.update((id(objects), id(seen)))
    rows, references = array.array("Q"), array.array("Q")
    used_types = {}
    seen.update((id(rows), id(references), id(used_types)))
    frames = frames_of_all_threads()
    index = 0
    while index < len(objects):
        each = objects[index]
        used_types[id(type(each))] = type(each)
        targets = gc.get_referents(each)
        flags = (TRACKED if index < tracked else 0) | (CHANGES if id(each) in frames else 0)
        rows.extend((id(each), id(type(each)), sys.getsizeof(each, 0), flags | len(targets) << 8))
        for target in targets:
            references.append(id(target))
            if id(target) not in seen:
                seen.add(id(target))
                objects.append(target)
        index += 1
    write_file(path, rows, references, used_types)


def frames_of_all_threads():
    """Addresses of those that have an object. Before 3.11 all have, and later none has of itself."""
    if sys.version_info >= (3, 11):
        return set()
    found = set()
    for frame in sys._current_frames().values():
        while frame is not None:
            found.add(id(frame))
            frame = frame.f_back
    return found


def write_file(path, rows, references, used_types):
    names = bytearray()
    type_rows = array.array("Q")
    for address, each in used_types.items():
        name = name_of(each).encode("utf-8", "replace")
        type_rows.extend((address, len(names), len(name)))
        names += name
    names += bytes(-len(names) % 8)
    is_free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    with open(path, "wb") as file:
        header = array.array("Q", (MAGIC, sys.hexversion, len(rows) // 4, len(references),
                                   len(used_types), len(names), int(is_free_threaded)))
        for part in (header, rows, references, type_rows, names):
            file.write(memoryview(part).cast("B"))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--objects", type=int, default=0)
    parser.add_argument("--torch")
    options = parser.parse_args()
    path = options.file
    kept = make_objects(options.objects)
    if options.torch:
        import torch_truth
        kept.append(torch_truth.make_tensors())
        torch_truth.write_tensors(options.torch)
    del parser, options
    sysconfig.get_config_var("Py_GIL_DISABLED")  # keeps what it reads the first time
    gc.collect()
    gc.disable()
    write_objects(path)
    os.write(1, b"ready\n")
    os.read(0, 1)
    os._exit(0)  # without warnings of what is still open


if __name__ == "__main__":
    main()
