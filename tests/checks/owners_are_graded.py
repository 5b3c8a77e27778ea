#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: owners_are_graded.py TESTS_DIR

What grades the answers of `tidemark owners` (tests/bench/owners_matrix.py) sees each mistake, and the
programs with known owners grow by what they say.
"""

import concurrent.futures
import copy
import pathlib
import sys
import time
import unittest

TESTS = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(TESTS / "bench"))
sys.dont_write_bytecode = True
import owners_matrix  # noqa: E402
import pythons  # noqa: E402

KEPT = 1_600_000
TRUTH = {"owners": [["collate() closure: items", "__main__.collate() closure: items"]],
         "decoys": ["__main__.recent"], "small": ["__main__.weak"], "kind": "container",
         "bytes_per_step": 16_000, "holds": {"type": "dict"}}
OWNER = {"rank": 1, "path": "collate() closure: items", "kind": "container", "verdict": "leak",
         "growth_bytes": KEPT, "growth_bytes_per_s": KEPT / 2, "growth_bytes_per_step": 16_000,
         "holds": [{"type": "dict", "count": 100, "bytes": KEPT}]}


def problems(truth=None, owners=None, **changes):
    """Of the right answer with these changes of its first owner and these other owners."""
    first = dict(copy.deepcopy(OWNER), **changes)
    return owners_matrix.grade(dict(TRUTH, **(truth or {})), {"owners": [first, *(owners or [])]}, KEPT, 2)


def other(path, growth_bytes, verdict="leak"):
    return {"path": path, "kind": "container", "verdict": verdict, "growth_bytes": growth_bytes}


class Grades(unittest.TestCase):
    def test_a_right_answer_has_no_problem(self):
        self.assertEqual(problems(), [])
        self.assertEqual(problems(path="__main__.collate() closure: items"), [])
        self.assertEqual(problems(growth_bytes=KEPT * 1.04, growth_bytes_per_s=None,
                                  growth_bytes_per_step=None), [])
        self.assertEqual(problems(owners=[other("__main__.weak", KEPT * 0.04)]), [])
        self.assertEqual(problems(owners=[other("__main__.recent", 500, "stable")]), [])

    def test_another_path_is_wrong(self):
        self.assertIn("first is __main__.items", problems(path="__main__.items")[0])
        self.assertIn("first is collate() closure: items[*]",
                      problems(path="collate() closure: items[*]")[0])

    def test_an_owner_that_is_not_first_is_wrong(self):
        wrong = problems(path="__main__", owners=[OWNER])
        self.assertEqual(len(wrong), 1)
        self.assertIn("first is __main__,", wrong[0])

    def test_no_owner_is_wrong(self):
        self.assertEqual(problems(verdict="warmup"),
                         ["no owner is named, not even collate() closure: items (warmup)"])
        self.assertEqual(owners_matrix.grade(TRUTH, {"owners": []}, KEPT, 2), ["no owner is named"])
        self.assertEqual(problems(verdict="growing", growth_bytes=0)[0][:17], "growth_bytes is 0")

    def test_growth_that_is_off_is_wrong(self):
        self.assertEqual(problems(growth_bytes=None), ["its growth is not known"])
        for name in ("growth_bytes", "growth_bytes_per_s", "growth_bytes_per_step"):
            self.assertEqual(len(problems(**{name: OWNER[name] * 0.94})), 1, name)

    def test_decoys_are_wrong(self):
        self.assertEqual(problems(owners=[other("__main__.recent[*]", 500)]),
                         ["__main__.recent[*] is named"])
        self.assertEqual(problems(owners=[other("__main__.recently", 500)]), [])
        self.assertEqual(len(problems(owners=[other("__main__.weak.data", KEPT * 0.06)])), 1)

    def test_another_kind_or_content_is_wrong(self):
        self.assertEqual(len(problems(kind="garbage")), 1)
        self.assertEqual(len(problems(holds=[{"type": "list"}])), 1)
        self.assertEqual(len(problems(holds=[])), 1)

    def test_of_two_owners_both_are_to_be_named(self):
        truth = {"owners": [*TRUTH["owners"], ["__main__.second"]]}
        self.assertEqual(problems(truth), ["__main__.second is not named"])
        self.assertEqual(problems(truth, owners=[other("__main__.second", 10)]), [])
        self.assertEqual(problems(truth, shared_with="__main__.second"), [])

    def test_an_owner_of_what_does_not_grow_is_wrong(self):
        truth = {"owners": [], "bytes_per_step": None}
        self.assertEqual(len(problems(truth)), 1)
        self.assertEqual(len(problems(truth, verdict="undetermined")), 1)
        for verdict in ("stable", "warmup", "spikes"):
            self.assertEqual(problems(truth, verdict=verdict), [])


class Programs(unittest.TestCase):
    """With the interpreter that runs this."""

    STEPS = 300
    WARM_UP_STEPS = 100
    # Small tensors are put where larger ones were freed, and their graphs have nodes; what threads of
    # torch keep comes on top while the machine is busy.
    LEAST, MOST = 0.7, 2

    def grown(self, folder, shape):
        """Resident bytes for each step, over those that are declared."""
        with owners_matrix.running(self.python, folder, shape, ["--rate", "400"]) as (truth, log):
            begin = self.after(log, self.WARM_UP_STEPS, truth["pid"])
            end = self.after(log, self.WARM_UP_STEPS + self.STEPS, truth["pid"])
        per_step = (end[1] - begin[1]) / (end[0] - begin[0])
        return per_step / truth["bytes_per_step"] if shape.has_owner else per_step

    def after(self, log, count, pid):
        """How many steps were taken, at least so many, and the resident bytes then."""
        deadline = time.monotonic() + 60
        while not log.exists() or log.read_text().count("\n") < count:
            self.assertLess(time.monotonic(), deadline, f"{log.name} has no {count} steps")
            time.sleep(0.02)
        pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
        return log.read_text().count("\n"), 4096 * pages

    def test_they_grow_by_what_they_declare(self):
        self.python = pythons.asked(sys.executable)[0]
        with owners_matrix.programs_for(self.python) as folder, \
                concurrent.futures.ThreadPoolExecutor(4) as pool:
            shapes, missing = owners_matrix.shapes_of(self.python, folder, ())
            self.assertGreaterEqual(len([each for each in shapes if each.has_owner]), 25, missing)
            for shape, ratio in zip(shapes, pool.map(lambda each: self.grown(folder, each), shapes)):
                with self.subTest(shape.name):
                    if shape.has_owner:
                        self.assertGreater(ratio, self.LEAST)
                        self.assertLess(ratio, self.MOST)
                    else:
                        self.assertLess(abs(ratio), 4096)


if __name__ == "__main__":
    unittest.main()
