# SPDX-License-Identifier: Apache-2.0
"""Tests of api/tidemark.py: `python3 tidemark_py_test.py MARKER_LAYOUT`.

Each test marks in an interpreter of its own, which prints what its marker files hold.
"""

import json
import os
import struct
import subprocess
import sys
import textwrap
import unittest

LAYOUT_PROGRAM = sys.argv.pop(1)
HERE = os.path.dirname(os.path.abspath(__file__))
API = os.path.join(HERE, "..", "..", "..", "api")
STAND_INS = os.path.join(HERE, "stand_ins")
DIRECTORY = "/dev/shm/tidemark-%d" % os.geteuid()

sys.dont_write_bytecode = True
sys.path.insert(0, API)

# What the scripts below start with: dump() tells what this process has marked.
PRELUDE = """
import os, struct, sys
sys.dont_write_bytecode = True
sys.path[:0] = [%r, %r]
DIRECTORY = %r

def files(pid=None):
    try:
        names = os.listdir(DIRECTORY)
    except FileNotFoundError:
        return []
    return sorted(name for name in names if name.startswith("%%d-" %% (pid or os.getpid())))

def dump(pid=None):
    lines = []
    for name in files(pid):
        with open(os.path.join(DIRECTORY, name), "rb") as file:
            data = file.read()
        (count,) = struct.unpack_from("@Q", data, 64)
        for index in range(max(0, count - 4096), count):
            sequence, time, value, kind, length = struct.unpack_from(
                "@QQqII", data, 128 + index %% 4096 * 64)
            start = 128 + index %% 4096 * 64 + 32
            text = data[start:start + length].decode() if kind > 2 else value
            text = "%%s %%d" %% (text, value) if kind == 5 else text
            kind = {1: "step", 2: "epoch", 3: "begin", 4: "end", 5: "gauge"}[kind]
            lines.append("%%s %%s" %% (kind, text) if sequence == index + 1 else "torn")
    return lines
""" % (API, STAND_INS, DIRECTORY)


def run(script, **environment):
    """What the script printed. It must not fail."""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
        env=dict(os.environ, **environment),
        timeout=60,
    )
    if done.returncode != 0:
        raise AssertionError("exit %d:\n%s" % (done.returncode, done.stdout))
    return done.stdout.strip()


class Layout(unittest.TestCase):
    def test_is_that_of_the_c_header(self):
        import tidemark

        c = json.loads(subprocess.check_output([LAYOUT_PROGRAM]).decode())
        self.assertEqual(tidemark._MAGIC, c["magic"])
        self.assertEqual(tidemark._VERSION, c["version"])
        self.assertEqual(tidemark._CAPACITY, c["capacity"])
        self.assertEqual(tidemark._HEADER_BYTES, c["header_bytes"])
        self.assertEqual(tidemark._RECORD_BYTES, c["record_bytes"])
        self.assertEqual(tidemark._FILE_BYTES, c["file_bytes"])
        self.assertEqual(tidemark._NAME_BYTES, c["longest_name"])
        kinds = [tidemark._STEP, tidemark._EPOCH, tidemark._PHASE_BEGIN, tidemark._PHASE_END,
                 tidemark._GAUGE]
        self.assertEqual(kinds, c["kinds"])
        for unit, names in {
            8: {"magic": tidemark._U64_MAGIC, "start_ticks": tidemark._U64_START_TICKS,
                "users": tidemark._U64_USERS, "next": tidemark._U64_NEXT},
            4: {"version": tidemark._U32_VERSION, "record_bytes": tidemark._U32_RECORD_BYTES,
                "capacity": tidemark._U32_CAPACITY, "pid": tidemark._U32_PID},
        }.items():
            for name, position in names.items():
                self.assertEqual(position * unit, c["header." + name], name)
        self.assertEqual(tidemark._LATEST_AT[tidemark._STEP], c["header.step"])
        self.assertEqual(tidemark._LATEST_AT[tidemark._EPOCH], c["header.epoch"])
        self.assertEqual(c["header.step"] + 8, c["header.step_time_ns"])
        self.assertEqual(c["header.epoch"] + 8, c["header.epoch_time_ns"])
        body = [c["record." + name] for name in ("time_ns", "value", "kind", "name_bytes", "name")]
        self.assertEqual(body, [8, 16, 24, 28, 8 + tidemark._RECORD_BODY.size])
        self.assertEqual(struct.calcsize("@qQ"), tidemark._LATEST.size)


class Marking(unittest.TestCase):
    def test_writes_one_record_per_call(self):
        self.assertEqual(
            run("""
                import tidemark
                tidemark.epoch(1)
                tidemark.step(41)
                with tidemark.phase("eval"):
                    tidemark.step(-1)
                print(dump())
            """),
            "['epoch 1', 'step 41', 'begin eval', 'step -1', 'end eval']")

    def test_ends_a_phase_that_raises(self):
        self.assertEqual(
            run("""
                import tidemark
                try:
                    with tidemark.phase("eval"):
                        raise KeyError
                except KeyError:
                    print(dump())
            """),
            "['begin eval', 'end eval']")

    def test_keeps_the_last_records_when_the_ring_wraps(self):
        self.assertEqual(
            run("""
                import tidemark
                for n in range(10000):
                    tidemark.step(n)
                lines = dump()
                print(len(lines), lines[0], lines[-1])
            """),
            "4096 step 5904 step 9999")

    def test_takes_every_kind_of_number_and_name(self):
        self.assertEqual(
            run("""
                import tidemark
                class Scalar:
                    def __int__(self): return 12
                tidemark.step(Scalar())
                tidemark.step(7.0)
                tidemark.phase_begin("x" * 40)
                tidemark.phase_end(b"bytes")
                print(dump())
            """),
            "['step 12', 'step 7', 'begin %s', 'end bytes']" % ("x" * 32))

    def test_never_raises(self):
        self.assertEqual(
            run("""
                import tidemark
                tidemark.step(None)
                tidemark.step("many")
                tidemark.step(1 << 70)
                tidemark.epoch(object())
                tidemark.phase_begin(object)
                tidemark.phase_begin("\\ud800")
                tidemark.gauge("x", None)
                tidemark.gauge("x", 1 << 70)
                tidemark.torch_memory()
                tidemark.step(1)
                print(dump()[-1])
            """),
            "step 1")

    def test_is_all_in_memory_from_the_first_call_on(self):
        self.assertEqual(run("""
            import re, tidemark
            def shared():
                with open("/proc/self/status") as status:
                    return int(re.search(r"RssShmem:\\s+(\\d+)", status.read()).group(1))
            tidemark.step(0)
            first = shared()
            for i in range(1, 10000):
                tidemark.step(i)
            print(shared() - first)
        """), "0")

    def test_does_nothing_when_switched_off(self):
        self.assertEqual(
            run("import tidemark; tidemark.step(1); print(files())", TIDEMARK_MARKERS="off"), "[]")

    def test_does_nothing_under_a_file_size_limit_that_is_too_small(self):
        self.assertEqual(
            run("""
                import resource, signal, tidemark
                signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
                resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
                tidemark.step(1)
                print("alive", files())
            """),
            "alive []")

    def test_loses_no_record_of_many_threads(self):
        self.assertEqual(
            run("""
                import threading, tidemark
                threads = [threading.Thread(target=lambda: [tidemark.step(1) for _ in range(900)])
                           for _ in range(4)]
                for thread in threads: thread.start()
                for thread in threads: thread.join()
                lines = dump()
                print(len(lines), set(lines))
            """),
            "3600 {'step 1'}")

    def test_marks_from_a_signal_handler(self):
        self.assertEqual(
            run("""
                import signal, tidemark
                count = 0
                def handler(*_):
                    global count
                    count += 1
                    tidemark.step(-1)
                signal.signal(signal.SIGALRM, handler)
                signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
                while count < 50:
                    tidemark.step(1)
                signal.setitimer(signal.ITIMER_REAL, 0)
                print("alive", "torn" in dump()[:-1])
            """),
            "alive False")


TORCH = """
    import tidemark, types
    class Cuda:
        initialized, asked = True, 0
        def is_initialized(self): return self.initialized
        def device_count(self): return 2
        def memory_stats_as_nested_dict(self, device):
            self.asked += 1
            return {"allocated_bytes": {"all": {"current": 10 + device}},
                    "reserved_bytes": {"all": {"current": 100 + device}}}
    cuda = Cuda()
    sys.modules["torch"] = types.SimpleNamespace(cuda=cuda)
"""


class TorchMemory(unittest.TestCase):
    def test_marks_the_sums_over_all_devices(self):
        self.assertEqual(
            run(TORCH + """
    tidemark.torch_memory()
    print(dump())
"""),
            "['gauge torch_gpu_allocated_bytes 21', 'gauge torch_gpu_reserved_bytes 201']")

    def test_asks_at_most_twice_a_second(self):
        self.assertEqual(
            run(TORCH + """
    for _ in range(1000):
        tidemark.torch_memory()
    print(cuda.asked <= 4, len(dump()) <= 4)
"""),
            "True True")

    def test_never_starts_cuda(self):
        self.assertEqual(
            run(TORCH + """
    cuda.initialized = False
    tidemark.torch_memory()
    print(cuda.asked, files())
"""),
            "0 []")


class Life(unittest.TestCase):
    def test_a_forked_child_gets_its_own_file(self):
        self.assertEqual(
            run("""
                import tidemark
                tidemark.step(1)
                parent = os.getpid()
                child = os.fork()
                if child == 0:
                    tidemark.step(100)
                    print(dump(), dump(parent), flush=True)
                    os.remove(os.path.join(DIRECTORY, files()[0]))
                    os._exit(0)
                os.waitpid(child, 0)
                print(dump())
            """),
            "['step 100'] ['step 1']\n['step 1']")

    def test_the_file_is_removed_at_exit(self):
        pid = run("""
            import tidemark
            tidemark.step(1)
            assert files()
            print(os.getpid())
        """)
        left = [name for name in os.listdir(DIRECTORY) if name.startswith(pid + "-")]
        self.assertEqual(left, [])

    def test_the_file_of_a_multiprocessing_child_is_removed(self):
        self.assertEqual(
            run("""
                import multiprocessing, tidemark
                def child(pipe):
                    tidemark.step(1)
                    pipe.send(len(files()))
                context = multiprocessing.get_context("fork")
                ours, theirs = context.Pipe()
                process = context.Process(target=child, args=(theirs,))
                process.start()
                process.join()
                print(ours.recv(), files(process.pid))
            """),
            "1 []")

    def test_files_of_the_dead_are_removed_and_no_others(self):
        self.assertEqual(
            run("""
                import tidemark
                dead = os.fork()
                if dead == 0:
                    tidemark.step(1)
                    os._exit(0)
                os.waitid(os.P_PID, dead, os.WEXITED | os.WNOWAIT)
                names = files(dead)  # while it is a zombie, nobody else removes them
                namespace = os.stat("/proc/self/ns/pid").st_ino
                kept = ["%d-1-%d.x.markers" % (dead, namespace + 1),
                        "%d-1-%d.x.markers" % (os.getppid(), namespace)]
                for name in kept:
                    open(os.path.join(DIRECTORY, name), "w").close()
                os.waitpid(dead, 0)
                tidemark.step(1)
                print(len(names), [name in os.listdir(DIRECTORY) for name in names + kept])
                for name in kept:
                    os.remove(os.path.join(DIRECTORY, name))
            """),
            "1 [False, True, True]")

    def test_a_second_copy_of_the_module_gets_its_own_file(self):
        self.assertEqual(
            run("""
                import importlib, tidemark
                tidemark.step(1)
                del sys.modules["tidemark"]
                copy = importlib.import_module("tidemark")
                copy.step(2)
                tidemark.step(3)
                print([name.split(".")[1] for name in files()], dump())
            """),
            "['py', 'py1'] ['step 1', 'step 3', 'step 2']")

    def test_the_import_loads_no_framework(self):
        self.assertEqual(
            run("""
                import tidemark
                print([name for name in sys.modules if name.split(".")[0] in
                       ("transformers", "lightning", "pytorch_lightning", "torch", "numpy")])
            """),
            "[]")


class HuggingFace(unittest.TestCase):
    def test_marks_steps_epochs_and_evaluations(self):
        self.assertEqual(
            run("""
                import tidemark, transformers
                transformers.Trainer(callbacks=[tidemark.hf_callback()]).train(
                    epochs=2, steps_per_epoch=2)
                print(dump())
            """),
            str(["begin train",
                 "epoch 0", "step 1", "step 2", "begin eval", "end eval",
                 "epoch 1", "step 3", "step 4", "begin eval", "end eval",
                 "end train"]))


class Lightning(unittest.TestCase):
    EXPECTED = str(["begin eval", "end eval", "begin train",
                    "epoch 0", "step 1", "step 2", "begin eval", "end eval",
                    "epoch 1", "step 3", "step 4", "begin eval", "end eval",
                    "end train"])
    FIT = """
        callback = tidemark.lightning_callback()
        trainer = Trainer(callbacks=[callback], accumulate_grad_batches=2)
        trainer.fit(epochs=2, steps_per_epoch=2)
        print(dump())
    """

    def test_marks_steps_epochs_and_evaluations(self):
        self.assertEqual(
            run("import tidemark\nfrom lightning.pytorch import Trainer" + textwrap.dedent(self.FIT)),
            self.EXPECTED)

    def test_uses_the_lightning_that_the_program_uses(self):
        self.assertEqual(
            run("import tidemark\nfrom pytorch_lightning import Trainer" + textwrap.dedent(self.FIT)),
            self.EXPECTED)

    def test_says_what_is_missing(self):
        self.assertIn(
            "needs lightning or pytorch_lightning",
            run("""
                sys.path.remove(%r)
                import tidemark
                try:
                    tidemark.lightning_callback()
                except ImportError as error:
                    print(error)
            """ % STAND_INS))


if __name__ == "__main__":
    unittest.main()
