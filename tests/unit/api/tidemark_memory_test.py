# SPDX-License-Identifier: Apache-2.0
"""Tests of api/tidemark_memory.py: `python3 tidemark_memory_test.py [SUITE]`."""

import os
import subprocess
import sys
import textwrap
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
API = os.path.join(HERE, "..", "..", "..", "api")
MIB = 1 << 20

sys.dont_write_bytecode = True
sys.path.insert(0, API)

# What the scripts below start with. `keep(mib)` is memory that goes back to the system at once when
# it is freed; `lines` is what a sink was given.
PRELUDE = """
import gc, mmap, os, re, sys, types
sys.dont_write_bytecode = True
sys.path[:0] = [%r, %r]
lines = []

def keep(mib):
    memory = mmap.mmap(-1, mib << 20)
    for at in range(0, mib << 20, 4096):
        memory[at] = 1
    return memory

def footprint():
    with open("/proc/self/status") as status:
        text = status.read()
    names = ("RssAnon", "RssShmem", "VmSwap")
    return sum(int(re.search(name + r":\\s+(\\d+)", text).group(1)) << 10 for name in names)

def fake_torch(**cuda):
    cuda.setdefault("is_initialized", lambda: True)
    cuda.setdefault("device_count", lambda: 1)
    sys.modules["torch"] = types.SimpleNamespace(cuda=types.SimpleNamespace(**cuda))

def gpu_stats(allocated, reserved):
    return {"allocated_bytes": {"all": {"current": allocated}},
            "reserved_bytes": {"all": {"current": reserved}}}
""" % (API, os.path.join(HERE, "stand_ins"))


def run(script, **environment):
    """What the script printed. It must not fail."""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
        env=dict(os.environ, **environment),
        timeout=120,
    )
    if done.returncode != 0:
        raise AssertionError("exit %d:\n%s" % (done.returncode, done.stdout))
    return done.stdout.strip()


class Logger(unittest.TestCase):
    def test_logs_every_so_many_steps(self):
        self.assertEqual(
            run("""
                import tidemark
                with tidemark.memory_logger(every=10, sink=lines.append, objects=0) as logger:
                    for n in range(1, 26):
                        logger.step(n)
                print([line.split(":")[0] for line in lines])
            """),
            "['start', 'step 10', 'step 20', 'end', 'memory', 'growth']")

    def test_counts_steps_itself_and_takes_steps_that_skip_numbers(self):
        self.assertEqual(
            run("""
                import tidemark
                logger = tidemark.memory_logger(every=2, sink=lines.append)
                for _ in range(4):
                    logger.step()
                for n in (1007, 1039, 1071):
                    logger.step(n)
                print([line.split(":")[0] for line in lines])
            """).splitlines()[0],
            "['start', 'step 2', 'step 4', 'step 1007', 'step 1039', 'step 1071']")

    def test_says_what_the_kernel_says(self):
        before, latest, truth, change = eval(run("""
            import tidemark
            logger = tidemark.memory_logger(every=1, sink=lines.append, objects=0)
            logger.step()
            before = logger.latest["footprint_bytes"]
            kept = keep(64)
            logger.step()
            sizes = before, logger.latest["footprint_bytes"], footprint(), logger.latest["rss_bytes"]
            logger.finish()
            print(sizes[:3] + (re.search(r"\\(\\+([\\d.]+) MiB\\)", lines[2]).group(1),))
        """))
        self.assertAlmostEqual(latest, truth, delta=MIB)
        self.assertAlmostEqual(latest - before, 64 * MIB, delta=MIB)
        self.assertAlmostEqual(float(change), 64, delta=1)

    def test_adds_what_children_hold(self):
        count, size, line = eval(run("""
            import tidemark
            ours, theirs = os.pipe(), os.pipe()
            if os.fork() == 0:
                kept = keep(32)
                os.write(ours[1], b"x")
                os.close(theirs[1])
                os.read(theirs[0], 1)
                os._exit(0)
            os.read(ours[0], 1)
            logger = tidemark.memory_logger(sink=lines.append, objects=0)
            logger.begin()
            print((logger.latest["children"], logger.latest["children_bytes"], lines[0]))
            os.close(theirs[1])
            os.wait()
            logger.finish()
        """))
        self.assertEqual(count, 1)
        self.assertGreaterEqual(size, 32 * MIB)
        self.assertIn("child processes (1) at most 3", line)

    def test_adds_the_memory_of_gpus_that_are_used(self):
        self.assertIn(
            "GPU 10.0 MiB allocated, 30.0 MiB reserved",
            run("""
                import tidemark
                fake_torch(memory_stats_as_nested_dict=lambda device: gpu_stats(10 << 20, 30 << 20))
                tidemark.memory_logger(objects=0).begin()
            """))

    def test_never_starts_cuda(self):
        self.assertNotIn(
            "GPU",
            run("""
                import tidemark
                fake_torch(is_initialized=lambda: False)
                tidemark.memory_logger(objects=0).begin()
            """))

    def test_prints_to_stderr_with_the_rank(self):
        self.assertIn(
            "tidemark: rank 3: start: footprint ",
            run("import tidemark; tidemark.memory_logger().begin()", RANK="3"))

    def test_a_sink_that_raises_stops_nothing_and_is_told_once(self):
        self.assertEqual(
            run("""
                import tidemark
                def sink(line): raise KeyError("full")
                with tidemark.memory_logger(every=1, sink=sink) as logger:
                    logger.step(1)
                    logger.step("many")
                tidemark.memory_logger(every="often", objects=0)
                print("alive")
            """),
            "tidemark: memory_logger: KeyError: 'full'\n"
            "tidemark: memory_logger: every='often' is no number of steps: it is 10\nalive")

    def test_a_sink_that_raises_once_loses_one_line(self):
        self.assertEqual(
            run("""
                import tidemark
                def sink(line):
                    lines.append(line)
                    if len(lines) == 1:
                        raise KeyError
                with tidemark.memory_logger(every=1, sink=sink, objects=0) as logger:
                    logger.step(1)
                print([line.split(":")[0] for line in lines])
            """).splitlines()[1],
            "['start', 'step 1', 'end', 'memory', 'growth']")

    def test_training_that_raises_has_a_summary(self):
        self.assertIn(
            "growth: ",
            run("""
                import tidemark
                logger = tidemark.memory_logger()
                logger.step(1)
                sys.exit(0)
            """))

    def test_a_forked_child_prints_no_summary(self):
        self.assertEqual(
            run("""
                import tidemark
                logger = tidemark.memory_logger()
                logger.step(1)
                if os.fork() == 0:
                    sys.exit(0)
                os.wait()
            """).count("growth: "),
            1)

    def test_a_copy_begins_anew_with_the_same_options(self):
        self.assertEqual(
            run("""
                import copy, pickle, tidemark
                logger = tidemark.memory_logger(every=7, objects=0)
                logger.begin()
                print([(other._every, other.latest) for other in
                       (copy.deepcopy(logger), pickle.loads(pickle.dumps(logger)))])
            """).splitlines()[1],
            "[(7, None), (7, None)]")

    def test_says_what_file_is_missing(self):
        self.assertIn(
            "tidemark.memory_logger needs tidemark_memory.py beside tidemark.py",
            run("""
                import shutil, tempfile
                with tempfile.TemporaryDirectory() as folder:
                    shutil.copy(os.path.join(sys.path[0], "tidemark.py"), folder)
                    sys.path[0] = folder
                    import tidemark
                    try:
                        tidemark.memory_logger
                    except ImportError as error:
                        print(error)
            """))

    def test_works_inside_a_package(self):
        self.assertEqual(
            run("""
                import shutil, tempfile
                with tempfile.TemporaryDirectory() as folder:
                    shutil.copytree(sys.path[0], os.path.join(folder, "mine", "api"))
                    sys.path[0] = folder
                    from mine.api import tidemark
                    print(tidemark.memory_logger.__module__, tidemark.run_isolated.__module__,
                          "tidemark" in sys.modules)
            """),
            "mine.api.tidemark_memory mine.api.tidemark_jobs False")


# Job 1 of a user: 165 MB per step while the first epoch fills a cache, then nothing for ever.
FIRST_EPOCH_CACHE_MB = [5376, 6984, 8675, 10333, 12066, 13745, 15547, 17406, 17844] + 15 * [17882]


class Growth(unittest.TestCase):
    def words(self, megabytes, warm_at=None, every=10):
        import tidemark_memory

        growth = tidemark_memory._Growth()
        growth.warm_at = warm_at
        for index, value in enumerate(megabytes):
            growth.add(every * (index + 1), int(value * 1e6))
        return growth.in_words()

    def test_a_leak_after_warm_up(self):
        words = self.words([1000 + 5 * n for n in range(40)], warm_at=100)
        self.assertIn("it grows by 488 KiB/step since warm-up (steps 110 to 400)", words)
        self.assertIn("this looks like a leak", words)

    def test_a_leak_under_spikes(self):
        curve = [1000 + 5 * n + (300 if n % 3 else 0) for n in range(120)]
        self.assertIn("this looks like a leak", self.words(curve, warm_at=100))

    def test_the_same_growth_within_warm_up_is_too_early(self):
        words = self.words([1000 + 5 * n for n in range(40)])
        self.assertIn("it still grows, last by 488 KiB/step: too early to call it a leak", words)

    def test_what_follows_warm_up_has_to_last(self):
        words = self.words([1000 + 5 * n for n in range(40)], warm_at=350)
        self.assertIn("too early to call it a leak (needs about 154 more steps)", words)

    def test_warm_up_that_has_ended(self):
        words = self.words(FIRST_EPOCH_CACHE_MB)
        self.assertRegex(words, "it grew by 11.6 GiB until about step (80|90|100), then stood still")
        self.assertIn("warm-up, no sign of a leak", words)

    def test_no_prefix_of_a_warm_up_is_a_leak(self):
        for length in range(1, len(FIRST_EPOCH_CACHE_MB) + 1):
            words = self.words(FIRST_EPOCH_CACHE_MB[:length])
            self.assertNotIn("looks like a leak", words, length)

    def test_a_plateau(self):
        words = self.words([1000 + (n * 7) % 3 for n in range(40)], warm_at=100)
        self.assertIn("it stands still: no sign of a leak (growth below 25.0 KiB/step", words)

    def test_a_sawtooth(self):
        words = self.words([1000 + 50 * (n % 7) for n in range(40)], warm_at=100)
        self.assertIn("no sign of a leak", words)

    def test_one_late_jump(self):
        words = self.words([1000] * 35 + [1400] * 5, warm_at=100)
        self.assertIn("one jump of 381 MiB", words)
        self.assertIn("too early to call it a leak", words)

    def test_growth_that_slows_down(self):
        words = self.words([1000 + 400 * (1 - 0.95**n) for n in range(60)], warm_at=50)
        self.assertIn("more and more slowly", words)
        self.assertIn("too early to call it a leak", words)

    def test_few_samples(self):
        self.assertEqual(
            self.words([1, 2, 3]), "too few samples (3) to say whether it grows")

    def test_a_long_run_keeps_few_points_and_the_same_answer(self):
        import tidemark_memory

        growth = tidemark_memory._Growth()
        growth.warm_at = 5000
        for step in range(1, 100001):
            growth.add(step, 10**9 + step * 50000)
            self.assertLessEqual(len(growth.points), 512)
        self.assertGreater(len(growth.points), 200)
        self.assertIn("it grows by 48.8 KiB/step", growth.in_words())
        self.assertEqual(growth.peak, (6 * 10**9, 100000))

    def test_a_real_leak_a_real_warm_up_and_a_real_plateau(self):
        out = run("""
            import tidemark
            for kind in ("leak", "warm-up", "plateau"):
                held = [keep(32)]
                with tidemark.memory_logger(every=2, sink=lines.append, warmup=20) as logger:
                    for n in range(1, 81):
                        if kind == "leak" or kind == "warm-up" and n < 25:
                            held.append(keep(1))
                        logger.step(n)
                print([line for line in lines if line.startswith("growth: ")][-1])
        """).splitlines()
        self.assertRegex(out[0], r"it grows by (1\.0\d MiB|10\d\d KiB)/step since warm-up")
        self.assertIn("looks like a leak", out[0])
        self.assertRegex(out[1], "it grew by 2[0-9.]+ MiB until about step 2[0-9], .* warm-up, no sign")
        self.assertIn("it stands still", out[2])


class Objects(unittest.TestCase):
    LOOK = """
        import tidemark, tidemark_memory
        class Batch: pass
        %s
        logger = tidemark.memory_logger(every=1, sink=lines.append)
        logger.step(1)
        kept = [Batch() for _ in range(5000)]
        logger.step(2)
        logger.finish()
        print([line for line in lines if "objects" in line][0])
    """

    def test_names_the_type_that_grew_most(self):
        self.assertIn("objects by type: __main__.Batch 5000 (+5000), ", run(self.LOOK % ""))

    def test_says_when_it_was_cut(self):
        self.assertRegex(
            run(self.LOOK % "tidemark_memory._MOST_SECONDS = 0"),
            r"objects by type \(cut after 0 s: \d+ of \d+\): ")

    def test_counts_nothing_where_there_are_too_many(self):
        self.assertIn(
            "(not counted: there are more than 9): none",
            run(self.LOOK % "tidemark_memory._MOST_ALLOCATED = 9"))

    def test_runs_no_code_of_objects(self):
        self.assertNotIn(
            "asked",
            run(self.LOOK % """
        class Proxy:
            def __getattribute__(self, name): print("asked for", name)
            __class__ = property(lambda self: print("asked for its class"))
            def __len__(self): print("asked for its length")
            def __eq__(self, other): print("asked whether it is equal")
        class Meta(type):
            def __hash__(self): print("asked for its hash"); return 1
            def __eq__(self, other): print("asked whether it is equal")
            __module__ = property(lambda self: print("asked for its module"))
        proxies = [Proxy() for _ in range(10)] + [Meta("Odd", (), {})() for _ in range(10)]
"""))


class Frameworks(unittest.TestCase):
    def test_hugging_face(self):
        self.assertEqual(
            run("""
                import tidemark, transformers
                logger = tidemark.memory_logger(every=2, sink=lines.append, objects=0)
                transformers.Trainer(callbacks=[logger]).train(epochs=2, steps_per_epoch=3)
                print([line.split(":")[0] for line in lines], logger._growth.warm_at)
            """),
            "['start', 'step 2', 'step 4', 'step 6', 'end', 'memory', 'growth'] 5")

    def test_hugging_face_that_is_imported_later(self):
        self.assertEqual(
            run("""
                import tidemark
                logger = tidemark.memory_logger(every=2, sink=lines.append, objects=0)
                state = types.SimpleNamespace(global_step=2, epoch=0.5)
                for hook in ("on_train_begin", "on_step_begin", "on_step_end", "on_log", "on_train_end"):
                    assert getattr(logger, hook)(object(), state, object(), model=None) is None
                print([line.split(":")[0] for line in lines])
            """),
            "['start', 'step 2', 'end', 'memory', 'growth']")

    FIT = """
        logger = tidemark.memory_logger(every=2, sink=lines.append, objects=0)
        Trainer(callbacks=[logger], accumulate_grad_batches=2).fit(epochs=2, steps_per_epoch=3)
        print([line.split(":")[0] for line in lines], logger._growth.warm_at)
    """

    def test_lightning(self):
        for package in ("lightning.pytorch", "pytorch_lightning"):
            script = "import tidemark\nfrom %s import Trainer" % package
            self.assertEqual(
                run(script + textwrap.dedent(self.FIT)),
                "['start', 'step 2', 'step 4', 'step 6', 'end', 'memory', 'growth'] 5")

    def test_all_of_them_at_once(self):
        script = "import tidemark, transformers, lightning.pytorch\nfrom pytorch_lightning import Trainer"
        self.assertIn("['start', 'step 2', ", run(script + textwrap.dedent(self.FIT)))

    def test_training_in_lightning_that_raises_has_a_summary(self):
        self.assertIn(
            "growth: ",
            run("""
                import tidemark, lightning.pytorch
                logger = tidemark.memory_logger()
                logger.on_train_start(types.SimpleNamespace(global_step=0), None)
                logger.on_exception(None, None, KeyError())
                os._exit(0)
            """))

    OPTIMIZER = """
        class Optimizer:
            calls = 0
            def zero_grad(self, set_to_none): self.calls += set_to_none
        optimizers = [Optimizer(), Optimizer()]
    """

    def test_cleanup_clears_the_gradients_of_their_optimizer(self):
        self.assertEqual(
            run("import tidemark, transformers, lightning.pytorch as pl" + self.OPTIMIZER.replace(
                "\n        ", "\n") + textwrap.dedent("""
                def callback(): return tidemark.cleanup(every=2, sink=lines.append)
                trainer = transformers.Trainer([callback()], optimizer=optimizers[0])
                trainer.train(epochs=2, steps_per_epoch=3)
                print(optimizers[0].calls)
                pl.Trainer([callback()], optimizers=optimizers[:1]).fit(epochs=1, steps_per_epoch=4)
                print(optimizers[0].calls)
            """)),
            "3\n5")

    def test_cleanup_leaves_gradients_that_are_not_complete(self):
        self.assertEqual(
            run("import tidemark, lightning.pytorch as pl" + self.OPTIMIZER.replace(
                "\n        ", "\n") + textwrap.dedent("""
                class Trainer(pl.Trainer):
                    batches = 0
                    def _call(self, hook, *args):
                        self.batches += hook == "on_train_batch_start"
                        super()._call(hook, *args)
                class Recorder(Optimizer):
                    after = []
                    def zero_grad(self, set_to_none): self.after.append(trainer.batches)
                cleaner = tidemark.cleanup(every=1, sink=lines.append)
                trainer = Trainer([cleaner], accumulate_grad_batches=4, optimizers=[Recorder()])
                trainer.fit(epochs=1, steps_per_epoch=3)
                print(Recorder.after)
            """)),
            "[4, 8, 12]")

    def test_cleanup_leaves_gradients_that_may_be_needed(self):
        self.assertEqual(
            run("import tidemark, lightning.pytorch as pl" + self.OPTIMIZER.replace(
                "\n        ", "\n") + textwrap.dedent("""
                def fit(trainer): trainer.fit(epochs=1, steps_per_epoch=4)
                def callback(): return tidemark.cleanup(every=1, sink=lines.append)
                fit(pl.Trainer([callback()], optimizers=optimizers))
                by_hand = pl.Trainer([callback()], optimizers=optimizers[:1])
                by_hand.lightning_module.automatic_optimization = False
                fit(by_hand)
                print([optimizer.calls for optimizer in optimizers])
            """)),
            "[0, 0]")


# A clock that moves by a second per step, and for nothing else but `costs` seconds a cleanup.
CLEAN = """
    import tidemark, tidemark_memory
    now = [0.0]
    tidemark_memory._clock = lambda: now[0]
    collect = gc.collect
    costs = 0.01
    def slow_collect():
        now[0] += costs
        return collect()
    gc.set_threshold(1000000)
    gc.collect = slow_collect

    def train(step, every=10, **options):
        with tidemark.cleanup(every=every, sink=lines.append, **options) as cleaner:
            for n in range(1, 61):
                step(n)
                now[0] += 1
                cleaner.step(n)
        print("\\n".join(lines))

    class Node: pass
    def cycles(n):
        node = Node()
        node.self, node.memory = node, keep(2)
"""


class Cleanup(unittest.TestCase):
    def clean(self, script):
        return run(textwrap.dedent(CLEAN) + textwrap.dedent(script)).splitlines()

    def test_is_worth_it_where_cycles_hold_memory(self):
        out = self.clean("train(cycles)")
        self.assertRegex(
            out[0], r"^cleanup: freed 1(19|20|21) MiB in 6 calls and cost 0.06 s, 0.1 % of the run: worth it$")
        self.assertRegex(out[1], r"freed 1(19|20|21) MiB by gc.collect; \d{3,} objects were garbage")

    def test_is_not_worth_it_where_there_is_no_garbage(self):
        out = self.clean("train(lambda n: None)")
        self.assertRegex(out[0], r"in 6 calls and cost 0.06 s, 0.1 % of the run: not worth it$")

    def test_says_when_it_costs_too_much(self):
        out = self.clean("costs = 2\ntrain(cycles)")
        self.assertRegex(out[0], "cost 12 s, 17 % of the run: worth it only where memory is short; try every=40")

    def test_is_what_frees_garbage_where_gc_is_off(self):
        out = self.clean("""
            gc.disable()
            def small_cycle(n):
                node = Node()
                node.self = node
            train(small_cycle)
        """)
        self.assertIn("worth it only because gc.disable() leaves garbage to these calls", out[0])

    GPU = """
        reserved = 0
        def stats(device): return gpu_stats(0, reserved)
        def empty_cache():
            global reserved
            reserved = 0
        fake_torch(memory_stats_as_nested_dict=stats, empty_cache=empty_cache)
    """

    def test_a_gpu_cache_that_fills_again_is_not_worth_it(self):
        out = self.clean(self.GPU + """
        def step(n):
            global reserved
            reserved = 100 << 20
        train(step)
        """)
        self.assertTrue(out[0].endswith("not worth it"), out[0])
        self.assertIn("600 MiB returned to the driver, 500 MiB of it was taken again", out[-1])

    def test_a_gpu_cache_that_stays_empty_is_worth_it(self):
        out = self.clean(self.GPU + """
        def step(n):
            global reserved
            reserved = (100 << 20) if n == 5 else reserved
        train(step)
        """)
        self.assertTrue(out[0].endswith(": worth it"), out[0])

    def test_an_optimizer_that_refuses_is_told(self):
        out = self.clean("train(lambda n: None, optimizer=object())")
        self.assertIn("gradients were left alone: zero_grad: AttributeError", "\n".join(out))

    def test_says_that_it_was_never_called(self):
        out = self.clean("train(lambda n: None, every=100)")
        self.assertEqual(out, ["cleanup: not called in fewer than 100 steps"])


class Torch(unittest.TestCase):
    SCRIPT = """
        import tidemark, torch
        model = torch.nn.Linear(512, 512)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        cache = []
        def train():
            model(torch.ones(8, 512)).sum().backward()
            optimizer.step()
    """

    def script(self, rest):
        return run(textwrap.dedent(self.SCRIPT) + textwrap.dedent(rest))

    def test_names_the_tensors_that_a_loop_keeps(self):
        out = self.script("""
            with tidemark.memory_logger(every=10, warmup=10, sink=lines.append) as logger:
                for n in range(1, 81):
                    train()
                    cache.append(torch.ones(256, 256))
                    cache[-1][0].requires_grad  # a view of the same memory
                    logger.step()
            print("\\n".join(lines))
        """)
        self.assertIn("this looks like a leak", out)
        self.assertRegex(out, r"\n  20.0 MiB: float32 \[256, 256\] cpu x 80 \(\+70\)\n")
        self.assertRegex(out, r"\n  2.00 MiB: float32 \[512, 512\] cpu x 2\n")

    def test_shared_memory_of_tensors_counts_once(self):
        self.assertRegex(
            self.script("""
                with tidemark.memory_logger(every=1, sink=lines.append) as logger:
                    cache = torch.ones(1024, 1024)
                    views = [cache[:512] for _ in range(7)]
                    sparse = torch.eye(3).to_sparse()
                    logger.step()
                print("\\n".join(lines))
            """),
            r"tensors hold 5.00 MiB")

    def test_cleanup_frees_gradients(self):
        self.assertEqual(
            self.script("""
                with tidemark.cleanup(every=2, sink=lines.append, optimizer=optimizer) as cleaner:
                    for n in range(1, 3):
                        train()
                        cleaner.step(n)
                        print([p.grad is None for p in model.parameters()])
            """),
            "[False, False]\n[True, True]")


def has_torch():
    command = [sys.executable, "-c", "import torch"]
    return subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0


if __name__ == "__main__":
    if sys.argv[1:] == ["Torch"] and not has_torch():
        print("/usr/bin/python3 has no torch")
        sys.exit(77)
    unittest.main()
