# SPDX-License-Identifier: MIT
"""tools/first_hour.py with programs that stand for a GPU's: each step's verdict is on the disk
before the next begins, and a file is believed only where it is whole, of hardware, and good."""
import contextlib
import io
import json
import os
import sys
import subprocess
import tempfile
import unittest
from unittest import mock

import nvfp4

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import first_hour  # noqa: E402

DEVICE = {"name": "NVIDIA B200", "compute_capability": "10.0", "emulated": False}


class FirstHour(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = folder.name
        self.file = os.path.join(self.build, "first-hour.jsonl")
        self.info(DEVICE)
        for program in ("nvfp4_test", "check_random"):
            self.write(program, "echo fine")
        self.write("nvfp4_bench", "[ \"$2\" != --json ] || echo '{\"rows\": [1]}' >\"$3\"")

    def write(self, program, text):
        path = os.path.join(self.build, program)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text + "\n")
        os.chmod(path, 0o755)

    def info(self, device):
        self.write("nvfp4", f"echo '{json.dumps({'devices': [device]})}'")

    def quietly(self, function, *arguments):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            return function(*arguments), out.getvalue()

    def take(self):
        return self.quietly(first_hour.first_hour, self.build, self.file)[0]

    def judge(self):
        return self.quietly(first_hour.judge, self.file)

    def test_a_good_run_speaks_for_its_family(self):
        self.assertTrue(self.take())
        good, said = self.judge()
        self.assertTrue(good)
        self.assertIn("the rows of sm100", said)
        steps = first_hour.read(self.file)
        self.assertEqual(steps["bench"]["result"], {"rows": [1]})
        self.assertEqual(steps["clocks"]["verdict"], "skipped", "CLOCKS=1 is another build")

    def test_one_step_that_fails_is_enough_and_the_others_still_run(self):
        self.write("check_random", "echo 1 wrong; exit 1")
        self.assertFalse(self.take())
        steps = first_hour.read(self.file)
        self.assertEqual((steps["random"]["verdict"], steps["random"]["output"]),
                         ("not ok", ["1 wrong"]))
        self.assertEqual(steps["bench"]["verdict"], "ok")
        good, said = self.judge()
        self.assertFalse(good)
        self.assertIn("stays as it is: random", said)

    def test_what_was_not_built_speaks_for_nothing(self):
        os.remove(os.path.join(self.build, "check_random"))
        self.take()
        self.assertFalse(self.judge()[0])

    def test_a_step_without_an_end_is_killed_with_its_children(self):
        self.write("check_random", "echo begun; sleep 60 & wait")
        steps = tuple((name, 1 if name == "random" else seconds, *rest)
                      for name, seconds, *rest in first_hour.STEPS)
        with mock.patch.object(first_hour, "STEPS", steps):
            self.assertFalse(self.take())
        line = first_hour.read(self.file)["random"]
        self.assertEqual((line["why"], line["output"]), ("no end within 1 s", ["begun"]))

    def test_what_was_said_is_on_the_disk_when_the_next_step_begins(self):
        self.write("check_random", f"grep -c verdict {self.file}")
        self.take()
        before = [step[0] for step in first_hour.STEPS].index("random")
        self.assertEqual(first_hour.read(self.file)["random"]["output"], [str(before)])

    def test_a_file_that_ends_early_is_refused(self):
        self.take()
        with open(self.file, encoding="utf-8") as file:
            lines = file.readlines()
        for kept, says in ((lines[:4], "ends before variants"), (lines[1:], "no first hour"),
                           (lines[:-1] + [lines[-1][:30]], "damaged")):
            with open(self.file, "w", encoding="utf-8") as file:
                file.writelines(kept)
            with self.assertRaisesRegex(ValueError, says):
                self.judge()

    def test_only_hardware_of_ours_is_believed(self):
        for change, says in (({"emulated": True}, "nothing about hardware"),
                             ({"compute_capability": "12.0"}, "none of these kernels")):
            self.info({**DEVICE, **change})
            self.take()
            with self.assertRaisesRegex(ValueError, says):
                self.judge()

    def test_it_takes_ten_minutes_at_most(self):
        self.assertLessEqual(sum(step[1] for step in first_hour.STEPS), 600)

    def test_each_step_names_tests_that_are_there(self):
        for name, _, program, arguments in first_hour.STEPS:
            if program == "nvfp4_test" and arguments:
                with self.subTest(name):
                    listed = subprocess.run(
                        [os.path.join(nvfp4.BUILD, program), *arguments, "--list-tests"],
                        capture_output=True, text=True, check=False)
                    self.assertRegex(listed.stdout, "[1-9][0-9]* matching test case")


if __name__ == "__main__":
    unittest.main()
