# SPDX-License-Identifier: MIT
"""tools/emulator/outside.py: verdicts of files and programs against a list."""
import os
import stat
import subprocess
import sys
import tempfile
import unittest

OUTSIDE = os.path.join(os.path.dirname(__file__), "../outside.py")
EMULATOR = os.path.join(os.environ["NVFP4_BUILD"], "emulator", "libcuda.so.1")
HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k() {\n"


class Outside(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.files = os.path.join(self.folder.name, "files")
        os.makedirs(self.files)
        self.put("fine.ptx", HEAD + "ret; }\n")
        self.put("wrong.ptx", HEAD + "frobnicate; ret; }\n")
        self.put("three.run", "#!/bin/sh\nexit 3\n")

    def tearDown(self):
        self.folder.cleanup()

    def put(self, name, text):
        path = os.path.join(self.files, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, os.stat(path).st_mode | (stat.S_IXUSR if name.endswith(".run") else 0))

    def check(self, *arguments):
        done = subprocess.run([sys.executable, OUTSIDE, self.files, "--library", EMULATOR, "--list",
                               os.path.join(self.folder.name, "list.txt"), *arguments],
                              capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def test_what_the_list_says_is_right_until_a_verdict_changes(self):
        status, said = self.check()
        self.assertEqual(status, 1, said)
        self.assertIn("fine.ptx: loads, the list says nothing", said)
        self.assertEqual(self.check("--write")[0], 0)
        status, said = self.check()
        self.assertEqual(status, 0, said)
        self.assertRegex(said, r"\A *\d+\.\d s  three\.run\n3 files, 0 differ\n\Z")
        with open(os.path.join(self.folder.name, "list.txt")) as file:
            lines = dict(line.split("  ", 1) for line in file if line[0] != "#")
        self.assertEqual(lines["three.run"], "exit 3\n")
        self.assertIn("unknown instruction", lines["wrong.ptx"])
        self.put("fine.ptx", HEAD + "bar.sync 99; ret; }\n")
        os.remove(os.path.join(self.files, "three.run"))
        status, said = self.check()
        self.assertEqual(status, 1)
        self.assertIn("the list says loads", said)
        self.assertIn("1 files of the list are not there, the first is three.run", said)


class Python(unittest.TestCase):
    """outside_python.py: programs where their packages and files are."""

    def test_what_is_there_is_made_and_the_rest_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "triton/python/tutorials/01-vector-add.py")
            os.makedirs(os.path.dirname(file))
            with open(file, "w") as tutorial:
                tutorial.write("")
            for package in ("torch", "triton"):
                os.makedirs(os.path.join(folder, "packages", package))
            done = subprocess.run(
                [sys.executable, os.path.join(os.path.dirname(OUTSIDE), "outside_python.py"),
                 folder], capture_output=True, text=True, check=True,
                env={**os.environ, "PYTHONPATH": os.path.join(folder, "packages")})
            with open(os.path.join(folder, "tutorials/01-vector-add.run")) as run:
                made = run.read()
            self.assertEqual(os.listdir(os.path.join(folder, "tutorials")), ["01-vector-add.run"])
        self.assertIn("EMU_DEVICE=H200 exec", made)
        self.assertTrue(made.endswith(
            "tutorial.py' triton/python/tutorials/01-vector-add.py\n"), made)
        self.assertIn("Python programs made with torch, triton", done.stdout)
        self.assertIn("tutorials/02-fused-softmax (triton/python/tutorials/02-fused-softmax.py)",
                      done.stdout)
        self.assertIn("taichi/first (taichi", done.stdout)


if __name__ == "__main__":
    unittest.main()
