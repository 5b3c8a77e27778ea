#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A check that never fails checks nothing: shows that each one sees what it is for.

usage: the_checks_can_fail.py CHECKS_DIR
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECKS = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(CHECKS))
import classes_stay_small  # noqa: E402
import every_test_is_in_a_target  # noqa: E402
import includes_follow_the_ranks  # noqa: E402
import links_lead_somewhere  # noqa: E402
sys.path.insert(0, str(CHECKS.parent.parent / "docs"))
import capture_dashboard  # noqa: E402


class Checks(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.root = pathlib.Path(self._folder.name)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def test_an_orphan_test_is_found(self):
        known = self.write("tests/a_test.cpp", "")
        orphan = self.write("tests/unit/b_test.cpp", "")
        commands = self.write("compile_commands.json", json.dumps(
            [{"directory": str(self.root), "file": str(known)}]))

        self.assertEqual(every_test_is_in_a_target.orphans(self.root, commands),
                         [orphan.resolve()])
        self.assertEqual(every_test_is_in_a_target.orphans(self.root, commands, "tests/unit"), [])

    def test_a_long_file_is_found(self):
        self.write("common/short.cpp", "\n" * 900)
        self.write("build/generated.cpp", "\n" * 9000)
        self.write("common/long.cpp", "\n" * 901)

        found = list(classes_stay_small.too_large(self.root, frozenset()))

        self.assertEqual(len(found), 1)
        self.assertIn("common/long.cpp has 901 lines", found[0])

    def test_a_class_with_many_methods_or_members_is_found(self):
        methods = "".join(f"  int get_{n}() const {{ return {{}}; }}\n" for n in range(27))
        members = "".join(f"  std::vector<int> values_{n}_{{1, 2}};\n" for n in range(21))
        self.write("common/a.h", f"class Talker final : public Base {{\n public:\n{methods}}};\n")
        self.write("common/b.h", f"class [[nodiscard]] Holder {{\n private:\n{members}}};\n")
        self.write("common/c.h", f"struct Row {{\n{members}}};\n")  # passive data
        self.write("tests/d.h", f"class Fixture {{\n{methods}}};\n")

        found = list(classes_stay_small.too_large(self.root, frozenset({"Holder"})))
        self.assertEqual(len(found), 1)
        self.assertIn("common/a.h: Talker has 0 members and 27 methods", found[0])

        found = list(classes_stay_small.too_large(self.root, frozenset({"Talker"})))
        self.assertIn("common/b.h: Holder has 21 members and 0 methods", found[0])

    def test_an_exception_that_is_not_needed_is_found(self):
        self.write("common/a.h", "class Small {};\n")

        found = list(classes_stay_small.too_large(self.root, frozenset({"Small"})))

        self.assertEqual(found, ["Small is small now: take it from the list of exceptions"])

    def test_members_and_methods_are_told_apart(self):
        header = """
            enum class Color { kRed };
            class Outer : public Base {
             public:
              Outer(int a, int b) : a_(a), b_{b} {}
              ~Outer();
              Outer(const Outer&) = delete;
              bool operator==(const Outer&) const = default;
              virtual int size() const = 0;
              [[nodiscard]] Result<int> open(std::function<void(int)> done = [](int) {}) const;
              template <typename T>
              void each(T visit) { for (;;) { visit("(;"); } }
              static Outer make();

             private:
              using Row = std::vector<int>;
              struct Inner { int x; int y; void f(); };
              static constexpr int kMost = 4;
              int a_ = 0, b_;
              std::function<void(int)> done_;
              int (*next_)(int) = nullptr;
              std::map<int, int> map_{{1, 2}};  // not a method()
              friend class Other;
            };"""

        self.assertEqual(list(classes_stay_small.classes(header)), [("Outer", 4, 4)])

    def test_an_include_against_the_ranks_is_found(self):
        self.write("monitor/a.h", '#include "recording/run_writer.h"\n')
        self.write("monitor/b.h", '#include "common/result.h"\n#include "monitor/a.h"\n')

        found = list(includes_follow_the_ranks.violations(self.root))

        self.assertEqual(found, ["monitor/a.h includes recording/run_writer.h: "
                                 "monitor may not see recording"])

    def test_an_include_that_goes_up_is_found(self):
        self.write("monitor/a.h", '#include "../recording/run_writer.h"\n')

        self.assertEqual(len(list(includes_follow_the_ranks.violations(self.root))), 1)

    def test_a_third_party_header_outside_its_adapter_is_found(self):
        self.write("recording/reader.h", "#include <sqlite3.h>\n")
        self.write("recording/sqlite.cpp", "#include <sqlite3.h>\n")

        self.assertEqual(len(list(includes_follow_the_ranks.violations(self.root))), 1)

    ALLOWED = {"common": set(), "tracker": {"common"}, "report": {"common", "tracker"}}
    TABLE = """
| folder | rank | holds | may include |
| --- | --- | --- | --- |
| `common/` | 0 | values, `Result` | nothing |
| `tracker/` | 1 | maths | `common` |
| `report/` | 2 | text | `common`, `tracker` |
"""

    def page_errors(self, old="", new=""):
        self.assertIn(old, self.TABLE)
        return list(includes_follow_the_ranks.page_errors(self.TABLE.replace(old, new),
                                                          self.ALLOWED))

    def test_a_table_of_folders_that_differs_is_found(self):
        self.assertEqual(self.page_errors(), [])
        self.assertEqual(self.page_errors("`common`, `tracker`", "`common`"),
                         ["docs/architecture.md and this check differ in what report may see: "
                          "tracker"])
        self.assertEqual(self.page_errors("| `report/` | 2 | text | `common`, `tracker` |\n"),
                         ["docs/architecture.md has no row for report"])
        self.assertEqual(self.page_errors("| `report/`", "| `cli/` | 3 | all | nothing |\n| `report/`"),
                         ["docs/architecture.md has a row for cli, the list of this check does not"])

    def test_a_table_of_folders_against_its_own_ranks_is_found(self):
        self.assertEqual(self.page_errors("`report/` | 2", "`report/` | 1"),
                         ["docs/architecture.md: report (rank 1) may not see tracker (rank 1)"])

    def test_a_page_that_names_a_file_that_is_gone_is_found(self):
        self.write("common/result.h", "")
        page = "`common/`, `common/result.h`, `mmap/munmap`, `common/gone.h`, `KiB/step`"

        self.assertEqual(list(includes_follow_the_ranks.missing_paths(self.root, page)),
                         ["docs/architecture.md names common/gone.h, which is not there"])

    def test_a_link_to_nothing_is_found(self):
        self.write("docs/a.md", "# How it works, `really`\n[here](#how-it-works-really)\n")
        self.write("README.md", '[a](docs/a.md#gone) [b](docs/b.md) [c](https://example.org/x)\n'
                                '[d](docs/a.md) <img src="docs/a.svg">\n')

        self.assertEqual(list(links_lead_somewhere.broken(self.root)),
                         ["README.md links to docs/a.md#gone: there is no such heading",
                          "README.md links to docs/b.md: there is no such file",
                          "README.md links to docs/a.svg: there is no such file"])


class Picture(unittest.TestCase):
    """docs/capture_dashboard.py on the output of `tmux capture-pane -e`."""

    def test_keeps_text_columns_and_colours(self):
        picture = capture_dashboard.svg("ab \x1b[1;31m<x>\x1b[0m  \x1b[38;5;232;7mend\x1b[m \u28ff\n")

        self.assertIn('<text x="14.0" y="26" textLength="15.6" lengthAdjust="spacingAndGlyphs">ab<',
                      picture)
        self.assertIn(' fill="#ff7b72" font-weight="bold">&lt;x&gt;</text>', picture)
        self.assertIn('<rect x="76.4" y="14" width="23.4" height="16" fill="#080808"/>', picture)
        self.assertIn(f' fill="{capture_dashboard.BACKGROUND}">end</text>', picture)
        self.assertIn(">\u28ff</text>", picture)


class HarnessBench(unittest.TestCase):
    def refusal(self, *arguments):
        done = subprocess.run(
            [sys.executable, CHECKS.parent / "bench/harness.py", "/nowhere", *arguments],
            capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        return done.stderr

    def test_the_benches_explain_themselves(self):
        for bench in ("harness.py", "profile.py"):
            done = subprocess.run([sys.executable, CHECKS.parent / "bench" / bench, "--help"],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_part_that_is_not_there_is_no_success(self):
        self.assertIn("there is no part verdict", self.refusal("--only", "verdict,pace"))

    def with_demo(self, script, *arguments):
        """The bench on a build whose `tidemark` is this shell script."""
        with tempfile.TemporaryDirectory() as build:
            folder = pathlib.Path(build) / "bin"
            folder.mkdir()
            for program in ("tidemark", "tidemark-harness"):
                (folder / program).write_text(f"#!/bin/sh\n{script}\n")
                (folder / program).chmod(0o700)
            return subprocess.run(
                [sys.executable, CHECKS.parent / "bench/harness.py", build, "--runs", "1", "--seeds",
                 "1", *arguments], capture_output=True, text=True)

    def test_a_scenario_that_is_not_there_is_no_success(self):
        done = self.with_demo("echo \"there is no scenario '$5'\" >&2; exit 2", "--scenario", "leek")

        self.assertNotEqual(done.returncode, 0)
        self.assertIn("there is no scenario 'leek'", done.stderr)

    def test_a_scenario_that_the_demo_calls_wrong_is_a_miss(self):
        side = '{"verdict":"leak","bytes_per_step":10}'
        answer = ('{"scenarios":[{"name":"leak-shm","ran":true,"right":%s,"problem":"the rate is off",'
                  f'"truth":{side},"found":{side},"advice":["%s"]}}]}}')

        wrong = self.with_demo(f"echo '{answer % ('false', 'unheld_shm')}'; exit 1", "--scenario", "leak-shm")
        right = self.with_demo(f"echo '{answer % ('true', 'unheld_shm')}'", "--scenario", "leak-shm")
        advised = self.with_demo(f"echo '{answer % ('true', 'swapped_out')}'", "--scenario", "leak-shm")

        self.assertEqual((wrong.returncode, right.returncode, advised.returncode), (1, 0, 1),
                         wrong.stderr + right.stderr + advised.stderr)
        self.assertIn("MISS: the rate is off", wrong.stdout)
        self.assertIn("advice that does not fit: swapped_out", advised.stdout)


class SkippedTests(unittest.TestCase):
    """On the output and the log of ctest 3.25."""

    ALLOWED = "# rights\n\nmay not mount *\nthere is no systemd-analyze here\n"

    def run_on(self, skips):
        """`skips`: what tests print before they skip, by name."""
        names = list(skips)
        lines = [f"{n}/9 Test #{n}: {name} ...***Skipped   0.01 sec"
                 for n, name in enumerate(names, 1)]
        self.summary = "\n".join(["100% tests passed, 0 tests failed out of 9", "",
                                  "Total Test time (real) =   0.02 sec", ""]
                                 + ["The following tests did not run:"] * bool(names)
                                 + [f"\t  {n} - {name} (Skipped)"
                                    for n, name in enumerate(names, 1)]
                                 + ["\t  8 - A.Disabled (Disabled)", ""])
        log = "Start testing: Nov 16 19:15 UTC\n" + "".join(
            f'{n}/9 Testing: {name}\n{n}/9 Test: {name}\nCommand: "x"\nOutput:\n'
            f"{'-' * 58}\n{skips[name]}<end of output>\nTest time =   0.01 sec\n"
            for n, name in enumerate(names, 1))
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "log").write_text(log)
            (root / "allowed").write_text(self.ALLOWED)
            return subprocess.run(
                [sys.executable, CHECKS / "skipped_tests.py", root / "log", root / "allowed"],
                input="\n".join(["Test project /x", *lines, "", self.summary]),
                capture_output=True, text=True, check=False)

    @staticmethod
    def gtest(name, reason):
        return (f"[ RUN      ] {name}\nnoise\n/x/y_test.cpp:3: Skipped\n{reason}\n"
                f"[  SKIPPED ] {name} (0 ms)\n[  SKIPPED ] {name}\n")

    def test_nothing_skipped_leaves_the_output_as_it_is(self):
        done = self.run_on({})

        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("skipped", done.stdout)
        self.assertTrue(done.stdout.startswith("Test project /x\n"))
        self.assertTrue(done.stdout.endswith(self.summary))

    def test_a_skip_for_an_allowed_reason_is_listed(self):
        done = self.run_on({"A.One": self.gtest("A.One", "may not mount here:\nno rights"),
                            "A.Two": self.gtest("A.Two", "may not mount here:\nno rights"),
                            "check.unit": "there is no systemd-analyze here\n"})

        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("3 tests were skipped:\n"
                      "  may not mount here: no rights: A.One and 1 more\n"
                      "  there is no systemd-analyze here: check.unit\n", done.stdout)
        self.assertTrue(done.stdout.endswith(self.summary), "ctest has the last word")

    def test_a_skip_for_any_other_reason_fails(self):
        for reason in ("tmux is not installed", "", "we may not mount here"):
            done = self.run_on({"A.One": self.gtest("A.One", "may not mount a tmpfs"),
                                "B.Two": self.gtest("B.Two", reason)})

            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(f"NOT ALLOWED  {reason or 'no reason given'}: B.Two", done.stdout)
            self.assertNotIn("NOT ALLOWED  may not mount a tmpfs", done.stdout)
            self.assertTrue(done.stdout.endswith(self.summary))


if __name__ == "__main__":
    unittest.main()
