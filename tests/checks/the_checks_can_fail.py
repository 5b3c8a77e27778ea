#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A check that never fails checks nothing: shows that each one sees what it is for.

usage: the_checks_can_fail.py CHECKS_DIR
"""

import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, sys.argv.pop(1))
import every_test_is_in_a_target  # noqa: E402
import includes_follow_the_ranks  # noqa: E402


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

    def test_an_include_against_the_ranks_is_found(self):
        self.write("monitor/a.h", '#include "recording/run_writer.h"\n')
        self.write("monitor/b.h", '#include "common/result.h"\n#include "monitor/a.h"\n')

        found = list(includes_follow_the_ranks.violations(self.root))

        self.assertEqual(found, ["monitor/a.h includes recording/run_writer.h: "
                                 "monitor may not see recording"])

    def test_a_third_party_header_outside_its_adapter_is_found(self):
        self.write("recording/reader.h", "#include <sqlite3.h>\n")
        self.write("recording/sqlite.cpp", "#include <sqlite3.h>\n")

        self.assertEqual(len(list(includes_follow_the_ranks.violations(self.root))), 1)


if __name__ == "__main__":
    unittest.main()
