# SPDX-License-Identifier: Apache-2.0
"""Compiles and runs the examples of markers.md, gpu.md and callbacks.md in docs/: `python3 docs_examples_test.py CC CXX`."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

CC, CXX = sys.argv.pop(1), sys.argv.pop(1)
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", "..", ".."))
API = os.path.join(ROOT, "api")


def examples(language, name="markers.md"):
    with open(os.path.join(ROOT, "docs", name), encoding="utf-8") as page:
        return re.findall(r"^```%s\n(.*?)^```" % language, page.read(), re.MULTILINE | re.DOTALL)


class Examples(unittest.TestCase):
    def run_quietly(self, command, **kwargs):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **kwargs)
        self.assertEqual(done.returncode, 0, done.stdout.decode())

    def compile_and_run(self, compiler, suffix, sources):
        self.assertTrue(sources)
        for source in sources:
            with tempfile.TemporaryDirectory() as directory:
                path = os.path.join(directory, "example" + suffix)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(source)
                program = os.path.join(directory, "example")
                self.run_quietly(compiler + ["-Wall", "-Wextra", "-Werror", "-I", API, path,
                                             "-o", program])
                self.run_quietly([program])

    def test_c(self):
        self.compile_and_run([CC, "-std=c99"], ".c", examples("c"))

    def test_cpp(self):
        self.compile_and_run([CXX, "-std=c++11"], ".cpp", examples("cpp"))

    def test_python(self):
        pages = ("markers.md", "gpu.md", "callbacks.md")
        sources = [source for page in pages for source in examples("python", page)]
        self.assertEqual(len(sources), 9)
        for source in sources:
            path = os.pathsep.join([API, os.path.join(HERE, "stand_ins")])
            with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
                file.write(source)
                file.flush()
                self.run_quietly([sys.executable, "-B", file.name],
                                 env=dict(os.environ, PYTHONPATH=path))


if __name__ == "__main__":
    unittest.main()
