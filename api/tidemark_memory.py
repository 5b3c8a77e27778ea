# SPDX-License-Identifier: Apache-2.0
"""Callbacks that log the memory of a training program and free what can be freed, from inside it:
``tidemark.memory_logger()`` and ``tidemark.cleanup()`` (docs/callbacks.md).

Copy this file with tidemark.py. Standard library only, Python 3.8 or later.
"""

import atexit
import collections
import functools
import gc
import os
import re
import sys
import time

try:
    from . import tidemark
except ImportError:
    import tidemark

__all__ = ["memory_logger", "cleanup"]

_clock = time.perf_counter
_STATUS = re.compile(rb"^(VmRSS|RssAnon|RssShmem|VmSwap):\s+(\d+) kB", re.MULTILINE)
_MOST_PROCESSES = 256


def memory_of(pid="self"):
    """Footprint (docs/memory-metrics.md) and RSS in bytes; (None, None) of what has exited."""
    try:
        with open("/proc/%s/status" % pid, "rb") as file:
            kib = {name: int(value) for name, value in _STATUS.findall(file.read())}
        return (kib[b"RssAnon"] + kib[b"RssShmem"] + kib[b"VmSwap"]) << 10, kib[b"VmRSS"] << 10
    except (OSError, KeyError):
        return None, None


def descendants_of(pid):
    """The pids below a process, at most 256; None where the kernel does not list children."""
    if not os.path.exists("/proc/%d/task/%d/children" % (pid, pid)):
        return None
    pids = [pid]
    for parent in pids:  # grows meanwhile
        try:
            for thread in os.listdir("/proc/%d/task" % parent):
                with open("/proc/%d/task/%s/children" % (parent, thread), "rb") as file:
                    children = map(int, file.read().split())
                pids.extend(child for child in children if child not in pids)
        except OSError:
            pass  # it has exited
        if len(pids) > _MOST_PROCESSES:
            break
    return pids[1:_MOST_PROCESSES]


def format_bytes(byte_count):
    """Three digits, as tidemark prints sizes."""
    if byte_count is None:
        return "?"
    value, unit = abs(float(byte_count)), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 999.5 or unit == "TiB":
            break
        value /= 1024
    digits = 0 if unit == "B" or value >= 99.95 else 1 if value >= 9.995 else 2
    return "%s%.*f %s" % ("-" if byte_count < 0 else "", digits, value, unit)


def format_change(byte_count):
    return ("+" if byte_count >= 0 else "") + format_bytes(byte_count)


def print_line(text):
    rank = os.environ.get("RANK")
    who = "tidemark: rank %s: " % rank if rank else "tidemark: "
    try:
        print(who + text, file=sys.stderr, flush=True)
    except Exception:
        pass  # there is nobody to tell


def _never_raises(method):
    """Training goes on whatever goes wrong here; the first problem is printed."""

    @functools.wraps(method)
    def call(self, *args, **kwargs):
        try:
            return method(self, *args, **kwargs)
        except Exception as error:
            self._complain(error)

    return call


class _LoopCallback:
    """The hooks of both callbacks, for plain loops, Hugging Face and Lightning."""

    def __init__(self, every, sink):
        try:
            self._every = max(1, int(every))
        except Exception:
            self._every = 10
            print_line("%s: every=%r is no number of steps: it is 10" % (self._NAME, every))
        self._sink = sink or print_line
        self._has_failed = False
        self._is_open = False
        self._global_step = None  # of Lightning

    def _complain(self, error):
        if not self._has_failed:
            self._has_failed = True
            print_line("%s: %s: %s" % (self._NAME, type(error).__name__, error))

    def _say(self, line):
        try:
            self._sink(line)
        except Exception as error:
            self._complain(error)

    def _nothing(self, *args, **kwargs):
        pass

    # Hugging Face and old versions of Lightning call these with different arguments.
    on_init_end = on_epoch_begin = on_epoch_end = _nothing

    def __getattr__(self, name):  # hooks that we have no use for
        if name.startswith("on_"):
            return self._nothing
        raise AttributeError(name)

    @_never_raises
    def begin(self):
        """Training begins. The first step() does this too."""
        if not self._is_open:
            self._is_open = True
            self._pid = os.getpid()
            self._begun = _clock()
            self._step = None
            atexit.register(self.finish)  # training that raises has a summary, too
            self._on_begin()

    @_never_raises
    def step(self, n=None, optimizer=None, epoch=None):
        """Step ``n`` is done; without a number, one more."""
        self.begin()
        if n is None:
            n = (self._step or 0) + 1
        n = int(n)
        before = n - 1 if self._step is None else self._step
        self._step = n
        self._on_step(n, n // self._every != before // self._every, optimizer, epoch)

    @_never_raises
    def finish(self):
        """Training has ended: the summary. Only the first call does something."""
        if self._is_open and self._pid == os.getpid():
            self._is_open = False
            atexit.unregister(self.finish)
            self._on_finish()

    def __reduce__(self):  # a copy, such as Lightning sends to its ranks, begins anew
        return self._made_by, ()

    def __enter__(self):
        self.begin()
        return self

    def __exit__(self, *exception):
        self.finish()
        return False

    # Hugging Face
    def on_train_begin(self, args, state, control, **kwargs):
        self.begin()

    @_never_raises
    def on_step_end(self, args, state, control, optimizer=None, **kwargs):
        self.step(state.global_step, optimizer, state.epoch)

    def on_train_end(self, *args, **kwargs):  # of Lightning, too
        self.finish()

    # Lightning
    @_never_raises
    def on_train_start(self, trainer, pl_module):
        self._global_step = trainer.global_step
        self.begin()

    @_never_raises
    def on_train_batch_end(self, trainer, pl_module, outputs=None, batch=None, batch_idx=0, *args):
        # With gradient accumulation several batches make one step.
        if trainer.global_step != self._global_step:
            self._global_step = trainer.global_step
            # Who optimizes by hand may need the gradients of one optimizer in the next batch.
            optimizers = getattr(trainer, "optimizers", ())
            is_automatic = getattr(pl_module, "automatic_optimization", False)
            optimizer = optimizers[0] if is_automatic and len(optimizers) == 1 else None
            batches = getattr(trainer, "num_training_batches", float("inf"))
            epoch = trainer.current_epoch + (batch_idx + 1) / batches
            self.step(trainer.global_step, optimizer, epoch)

    def on_exception(self, trainer, pl_module, exception):
        self.finish()


def _as_callback(loop_class, **options):
    """An object of the class that is a callback of the frameworks that have been imported, too."""
    bases = [loop_class]
    for module, name in (
        ("transformers.trainer_callback", "TrainerCallback"),
        ("lightning.pytorch.callbacks", "Callback"),
        ("pytorch_lightning.callbacks", "Callback"),
    ):
        base = getattr(sys.modules.get(module), name, None)
        if isinstance(base, type) and base not in bases:
            bases.append(base)
    made = type(loop_class.__name__, tuple(bases), {})(**options)
    made._made_by = functools.partial(_as_callback, loop_class, **options)
    return made


_LEAK = "this looks like a leak"


class _Growth:
    """A memory curve in at most 512 points, and in words what its low-water mark does."""

    _MOST_POINTS = 512
    _ENOUGH_POINTS = 8
    _MOST_BLOCKS = 16

    def __init__(self):
        self.points = []  # step, bytes
        self.peak = (0, 0)  # bytes, step
        self.warm_at = None  # the step at which warm-up counts as over
        self._taken = 0
        self._stride = 1  # samples for each point

    def add(self, step, byte_count):
        self.peak = max(self.peak, (byte_count, step))
        if self._taken % self._stride:
            last_step, low = self.points[-1]
            self.points[-1] = (last_step, min(low, byte_count))
        else:
            self.points.append((step, byte_count))
        self._taken += 1
        if len(self.points) == self._MOST_POINTS:
            pairs = zip(self.points[::2], self.points[1::2])
            self.points = [(first[0], min(first[1], second[1])) for first, second in pairs]
            self._taken = len(self.points) * 2 * self._stride
            self._stride *= 2

    def _floors(self):
        """At up to 16 steps: what memory did not fall below from there on."""
        count = min(self._MOST_BLOCKS, len(self.points))
        starts = [len(self.points) * block // count for block in range(count)]
        return [(self.points[at][0], min(low for _, low in self.points[at:])) for at in starts]

    def in_words(self):
        if len(self.points) < self._ENOUGH_POINTS:
            return "too few samples (%d) to say whether it grows" % len(self.points)
        floors = self._floors()
        lows = [low for _, low in floors]
        tolerance = max(1 << 20, lows[0] // 100)
        # From where on does it stand still until the end?
        still = next(at for at, low in enumerate(lows) if lows[-1] - low <= tolerance)
        last_step = self.points[-1][0]
        steps = last_step - floors[still][0]
        if len(lows) - still >= 3 and steps * 5 >= last_step - floors[0][0]:
            words = "it stands still: no sign of a leak"
            rise = lows[still] - lows[0]
            if rise > tolerance:
                words = "it grew by %s until about step %d, then stood still for %d steps: warm-up,"
                words += " no sign of a leak"
                words %= (format_bytes(rise), floors[still][0], steps)
            limit = format_bytes(tolerance / max(1, steps))
            return "%s (growth below %s/step would not show)" % (words, limit)
        flat = sum(low - lows[0] <= tolerance for low in lows)
        if flat * 2 >= len(lows):
            before = max(value for step, value in self.points if step < floors[flat][0])
            if before >= lows[-1]:
                return "it goes up and down, and comes back to where it began: no sign of a leak"
        return self._rising_in_words(floors, last_step)

    def _rising_in_words(self, floors, last_step):
        after = [floor for floor in floors if self.warm_at is not None and floor[0] >= self.warm_at]
        if len(after) < 6:
            needs = (
                "warm-up counts as over after an epoch and a quarter where epochs are known, else"
                " after 500 steps and 30 minutes; or say warmup=STEPS"
            )
            if self.warm_at is not None:
                # Until 6 of 16 floors lie after warm-up.
                more = (6 * (last_step - floors[0][0]) - 16 * (last_step - self.warm_at)) / 10
                needs = "needs about %d more steps" % max(1, more)
            words = "it still grows, last by %s/step: too early to call it a leak (%s)"
            return words % (format_bytes(_slope(floors[len(floors) // 2 :])), needs)
        rise = after[-1][1] - after[0][1]
        jump, at = max((later[1] - sooner[1], later[0]) for sooner, later in zip(after, after[1:]))
        span = "since warm-up (steps %d to %d)" % (after[0][0], last_step)
        middle = len(after) // 2
        early, late = _slope(after[: middle + 1]), _slope(after[middle:])
        if jump > 0.6 * rise:
            words = "one jump of %s near step %d %s: too early to call it a leak"
            return words % (format_bytes(jump), at, span)
        if late < 0.5 * early:
            words = "it grows more and more slowly %s, last by %s/step: too early to call it a leak"
            return words % (span, format_bytes(late))
        words = "it grows by %s/step %s and does not slow down: " + _LEAK
        return words % (format_bytes(_slope(after)), span)


def _slope(floors):
    return (floors[-1][1] - floors[0][1]) / max(1, floors[-1][0] - floors[0][0])


_MOST_ALLOCATED = 10_000_000  # blocks of CPython's allocator: there are fewer objects
_MOST_SECONDS = 1.0


class _HeapCount:
    """Objects that the garbage collector knows, by type, and tensors by kind. It takes little more
    than a second, and asks objects for nothing that could run code of the program."""

    def __init__(self):
        self.types, self.tensors, self.tensor_bytes = {}, {}, {}
        self.problem = ""
        if sys.implementation.name != "cpython" or not hasattr(sys, "getallocatedblocks"):
            self.problem = "not counted: only CPython lists its objects"
        elif sys.getallocatedblocks() > _MOST_ALLOCATED:
            self.problem = "not counted: there are more than %d" % _MOST_ALLOCATED
        else:
            self._count()

    def _count(self):
        torch = sys.modules.get("torch")
        # Subclasses may do anything when asked for their size.
        tensor_types = {id(torch.Tensor), id(torch.nn.Parameter)} if hasattr(torch, "nn") else ()
        counts, storages = {}, set()  # by the address of a type: its hash may be code of the program
        deadline = time.monotonic() + _MOST_SECONDS
        objects = gc.get_objects()
        for index, item in enumerate(objects):
            if index % 256 == 255 and time.monotonic() > deadline:
                self.problem = "cut after %g s: %d of %d" % (_MOST_SECONDS, index, len(objects))
                break
            kind = type(item)
            counts.setdefault(id(kind), [kind, 0])[1] += 1
            if id(kind) in tensor_types:
                self._count_tensor(item, storages)
        module_of, name_of = (type.__dict__[name].__get__ for name in ("__module__", "__qualname__"))
        for kind, count in counts.values():
            if kind is not type(self):
                module = module_of(kind)
                name = name_of(kind) if module == "builtins" else "%s.%s" % (module, name_of(kind))
                self.types[name] = self.types.get(name, 0) + count

    def _count_tensor(self, tensor, storages):
        try:
            storage = getattr(tensor, "untyped_storage", tensor.storage)()
            key, size = (str(tensor.device), storage.data_ptr()), storage.nbytes()
            shape = ", ".join(map(str, tensor.shape))
            name = "%s [%s] %s" % (str(tensor.dtype).replace("torch.", ""), shape, tensor.device)
        except Exception:
            return  # sparse and the like have no storage
        self.tensors[name] = self.tensors.get(name, 0) + 1
        # Memory that several share counts once.
        self.tensor_bytes[name] = self.tensor_bytes.get(name, 0) + (key not in storages) * size
        storages.add(key)

    def lines(self, before, at_most):
        """The types that grew most, and the largest tensors, with what came since `before`."""
        is_known = not before.problem and not self.problem

        def entry(counts, earlier, name, text="%s %d%s"):
            more = counts[name] - earlier.get(name, 0) if is_known else 0
            return text % (name, counts[name], " (+%d)" % more if more > 0 else "")

        def growth(name):
            more = self.types[name] - before.types.get(name, 0) if is_known else 0
            return max(0, more), self.types[name]

        names = sorted(self.types, key=growth, reverse=True)[:at_most]
        types = [entry(self.types, before.types, name) for name in names]
        note = " (%s)" % self.problem if self.problem else ""
        yield "objects by type%s: %s" % (note, ", ".join(types) or "none")
        if self.tensors:
            total = format_bytes(sum(self.tensor_bytes.values()))
            yield "%d tensors hold %s, the largest:" % (sum(self.tensors.values()), total)
        largest = sorted(self.tensor_bytes, key=self.tensor_bytes.get, reverse=True)
        for name in largest[:at_most]:
            size = format_bytes(self.tensor_bytes[name])
            yield "  %s: %s" % (size, entry(self.tensors, before.tensors, name, "%s x %d%s"))


_WARM_STEPS, _WARM_SECONDS, _WARM_EPOCHS = 500, 1800, 1.25


class _MemoryLogger(_LoopCallback):
    _NAME = "memory_logger"

    def __init__(self, every, sink, warmup, objects):
        super().__init__(every, sink)
        self._warmup = warmup
        self._objects = objects
        self.latest = None  # what the last line said, in bytes

    def _on_begin(self):
        self._growth = _Growth()
        self._heap = None
        self._first_step = self._first_epoch = None
        self._start = self.latest = None
        self._start = self._log("start")

    def _log(self, when):
        footprint, rss = memory_of()
        children = descendants_of(os.getpid())
        sizes = [memory_of(pid)[0] or 0 for pid in children or ()]
        sample = {
            "step": self._step,
            "footprint_bytes": footprint,
            "rss_bytes": rss,
            "children": None if children is None else len(children),
            "children_bytes": None if children is None else sum(sizes),
        }
        parts = ["footprint " + format_bytes(footprint), "RSS " + format_bytes(rss)]
        if self.latest and footprint is not None:
            parts[0] += " (%s)" % format_change(footprint - self.latest["footprint_bytes"])
        if children:  # forked children share pages with us and with each other
            total = format_bytes(sum(sizes))
            parts.append("child processes (%d) at most %s" % (len(children), total))
        if tidemark._uses_cuda():
            gpu = tidemark._gpu_memory()
            sample["gpu_allocated_bytes"], sample["gpu_reserved_bytes"] = gpu
            parts.append("GPU %s allocated, %s reserved" % tuple(map(format_bytes, gpu)))
        self.latest = sample
        self._say("%s: %s" % (when, ", ".join(parts)))
        return sample

    def _on_step(self, n, is_due, optimizer, epoch):
        if self._first_step is None:
            self._first_step, self._first_epoch = n - 1, epoch
            if self._start["footprint_bytes"] is not None:
                self._growth.add(n - 1, self._start["footprint_bytes"])
        if self._growth.warm_at is None and self._is_warm(n, epoch):
            self._growth.warm_at = n
        if not is_due:
            return
        sample = self._log("step %d" % n)
        if sample["footprint_bytes"] is not None:
            self._growth.add(n, sample["footprint_bytes"])
        if self._objects and self._heap is None:
            self._heap, self._heap_step = _HeapCount(), n

    def _is_warm(self, n, epoch):
        if self._warmup is not None:
            return n >= self._first_step + self._warmup
        if epoch is not None and self._first_epoch is not None:
            return epoch >= self._first_epoch + _WARM_EPOCHS
        return n >= self._first_step + _WARM_STEPS and _clock() >= self._begun + _WARM_SECONDS

    def _on_finish(self):
        before, end = self._start, self._log("end")
        ends = tuple(format_bytes(sample["footprint_bytes"]) for sample in (before, end))
        peak, peak_step = self._growth.peak
        peak_text = ", highest %s at step %d" % (format_bytes(peak), peak_step) if peak else ""
        self._say("memory: %s at the start, %s at the end" % ends + peak_text)
        words = self._growth.in_words()
        self._say("growth: " + words)
        if words.endswith(_LEAK):
            self._say("`tidemark owners` names the object that grows, `tidemark profile` the line")
        for name, words in (
            ("children_bytes", "child processes held at most"),
            ("gpu_reserved_bytes", "torch had reserved on GPUs"),
        ):
            if end.get(name):
                more = format_change(end[name] - (before.get(name) or 0))
                self._say("%s %s at the end (%s)" % (words, format_bytes(end[name]), more))
        if self._heap:
            self._say("since step %d in brackets:" % self._heap_step)
            for line in _HeapCount().lines(self._heap, self._objects):
                self._say(line)
        self._heap = None


def memory_logger(every=10, sink=None, warmup=None, objects=8):
    """Logs memory every N steps, and at the end how it grew and what there is. For Hugging Face and
    Lightning ``callbacks=[tidemark.memory_logger()]``, after their import; in other loops:

        with tidemark.memory_logger() as logger:
            for batch in loader:
                train(batch)
                logger.step()

    ``sink`` takes the lines, such as ``logging.getLogger("memory").info``; without it they go to
    stderr. ``warmup``: steps before growth may be called a leak, if you know. ``objects``: rows of
    the tables of objects and tensors; 0 leaves them out."""
    return _as_callback(_MemoryLogger, every=every, sink=sink, warmup=warmup, objects=objects)


def _digits(number):
    return ("%.0f" if number >= 10 else "%.2g") % number


_WORTH_SHARE = 0.01  # of the memory, freed by an average call
_WORTH_COST = 0.05  # of the time of the run


class _Cleanup(_LoopCallback):
    _NAME = "cleanup"

    def __init__(self, every, sink, optimizer):
        super().__init__(every, sink)
        self._optimizer = optimizer

    def _on_begin(self):
        self._calls = self._garbage = self._seconds = 0
        self._freed = collections.Counter()  # bytes of RAM by what freed them
        self._gpu_freed = self._gpu_returned = self._gpu_taken_again = self._gpu_kept = 0
        self._ram_seen = self._gpu_seen = 0  # sums over the calls
        self._gradient_problem = None
        self._gpu_left = None  # reserved after the last call, and what that returned

    def _on_step(self, n, is_due, optimizer, epoch):
        if is_due:
            begun = _clock()
            self._clean(self._optimizer if optimizer is None else optimizer)
            self._seconds += _clock() - begun
            self._calls += 1

    def _clean(self, optimizer):
        has_gpu = tidemark._uses_cuda()
        ram = memory_of()[0] or 0
        allocated, reserved = tidemark._gpu_memory() if has_gpu else (0, 0)
        self._ram_seen += ram
        self._gpu_seen += reserved
        if self._gpu_left:
            left, returned = self._gpu_left
            again = max(0, min(returned, reserved - left))
            self._gpu_taken_again += again
            self._gpu_kept += returned - again
        if optimizer is not None and self._clear_gradients(optimizer):
            ram = self._count_freed("zero_grad", ram)
        self._garbage += gc.collect()
        ram = self._count_freed("gc.collect", ram)
        if has_gpu:
            self._gpu_freed += allocated - tidemark._gpu_memory()[0]
            sys.modules["torch"].cuda.empty_cache()
            self._count_freed("empty_cache", ram)
            left = tidemark._gpu_memory()[1]
            self._gpu_returned += reserved - left
            self._gpu_left = left, reserved - left

    def _clear_gradients(self, optimizer):
        try:
            optimizer.zero_grad(set_to_none=True)
            return True
        except Exception as error:  # optimizers of other makers
            self._gradient_problem = "zero_grad: %s: %s" % (type(error).__name__, error)
            return False

    def _count_freed(self, name, before):
        now = memory_of()[0] or 0
        self._freed[name] += before - now
        return now

    def _on_finish(self):
        if not self._calls:
            self._say("cleanup: not called in fewer than %d steps" % self._every)
            return
        share = self._seconds / max(1e-9, _clock() - self._begun)
        freed = format_bytes(sum(self._freed.values()))
        cost = "%s s, %s %% of the run" % (_digits(self._seconds), _digits(100 * share))
        words = "cleanup: freed %s in %d calls and cost %s: %s"
        self._say(words % (freed, self._calls, cost, self._verdict(share)))
        parts = ["%s by %s" % (format_bytes(size), name) for name, size in self._freed.items()]
        garbage = "%d objects were garbage" % self._garbage
        self._say("cleanup: freed %s; %s" % (", ".join(parts), garbage))
        if self._gradient_problem:
            self._say("cleanup: gradients were left alone: " + self._gradient_problem)
        if self._gpu_seen:
            sizes = (self._gpu_freed, self._gpu_returned, self._gpu_taken_again)
            words = "cleanup: GPU: %s freed, %s returned to the driver, %s of it was taken again"
            self._say(words % tuple(map(format_bytes, sizes)))

    def _verdict(self, share):
        # The next backward pass allocates gradients again: they count for nothing.
        ram = self._freed["gc.collect"] / max(1, self._ram_seen)
        gpu = self._gpu_kept / max(1, self._gpu_seen)
        if max(ram, gpu) < _WORTH_SHARE:
            if self._garbage and not gc.isenabled():
                return "worth it only because gc.disable() leaves garbage to these calls"
            return "not worth it"
        if share > _WORTH_COST:
            return "worth it only where memory is short; try every=%d" % (4 * self._every)
        return "worth it"


def cleanup(every=10, sink=None, optimizer=None):
    """Frees what can be freed every N steps, and says at the end whether that was worth it:
    gradients (zero_grad) where there is an optimizer, garbage (gc.collect), torch's GPU cache
    (empty_cache). Used as memory_logger() is. Hugging Face and Lightning give it the optimizer; in
    other loops call ``step()`` after ``optimizer.step()``, where gradients are no longer needed."""
    return _as_callback(_Cleanup, every=every, sink=sink, optimizer=optimizer)
