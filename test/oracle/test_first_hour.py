# SPDX-License-Identifier: MIT
"""tools/gates/first_hour.py with programs that stand for a GPU's: each step's verdict is on the
disk
before the next begins, and a file is believed only where it is whole, of hardware, and good."""
import contextlib
import io
import json
import os
import sys
import subprocess
import time
import unittest
from unittest import mock

import nvfp4
import stand_in

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools", "gates"))
import first_hour  # noqa: E402

DEVICE = {"name": "NVIDIA B200", "compute_capability": "10.0", "emulated": False}


class FirstHour(stand_in.StandIns):
    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.build, "first-hour.jsonl")
        self.info(DEVICE)
        self.write("libnvfp4gemm.so.0", "the library")
        self.printing(json.dumps({"products": 104, "variants": 5, "k_partitions": [1, 2]}))
        self.write("check_random", "echo fine")
        self.write("nvfp4_bench", "[ \"$2\" != --json ] || echo '{\"rows\": [1]}' >\"$3\"")

    def printing(self, line):
        self.write("nvfp4_test", f"echo '{line}'\necho '7 passed, 0 failed, 2 skipped'")

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
        for row, speaks in (("sm100, sm100, 1, 1", True), ("sm100, sm100, 2, 1", True),
                            ("sm100, sm100, 1, 2", True), ("sm100, sm100, 1, 4", False),
                            ("sm90, sm90, 1, 1", False), ("sm80, sm100, 1, 1", False)):
            self.assertEqual(f"PROOF({row}, ...) may say hardware" in said, speaks, row)
        steps = first_hour.read(self.file)
        self.assertEqual(steps["bench"]["result"], {"rows": [1]})
        self.assertEqual(steps["clocks"]["verdict"], "skipped", "CLOCKS=1 is another build")

    def test_a_page_says_what_the_answers_set(self):
        answer = "n_multiple_of_8: yes, 24 tokens: 0 wrong sums; sets box_tokens()"
        self.write("nvfp4_probes", f"echo '{answer}'")
        _, said = self.quietly(first_hour.first_hour, self.build, self.file)
        self.assertIn(answer, said)
        self.assertIn(answer, self.judge()[1])

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

    def test_a_limit_holds_where_a_process_keeps_the_output_open(self):
        self.write("check_random", "echo begun; setsid sleep 20 & sleep 60")
        steps = tuple((name, 1 if name == "random" else seconds, *rest)
                      for name, seconds, *rest in first_hour.STEPS)
        start = time.monotonic()
        with mock.patch.object(first_hour, "STEPS", steps):
            self.assertFalse(self.take())
            self.assertEqual(first_hour.read(self.file)["random"]["output"], ["begun"])
        self.assertLess(time.monotonic() - start, 10)

    def test_json_that_is_not_there_is_a_line_and_no_end(self):
        for program, text, step in (("nvfp4", "echo words", "info"), ("nvfp4_bench", ":", "bench"),
                                    ("nvfp4_bench", "echo '{' >\"$3\"", "bench")):
            with self.subTest(step + text):
                self.setUp()
                self.write(program, text)
                self.assertFalse(self.take())
                steps = first_hour.read(self.file)
                self.assertEqual(steps[step]["verdict"], "not ok")
                self.assertIn("no JSON", steps[step]["why"])

    def test_tests_that_ran_nothing_are_not_ok(self):
        for text in ("echo 'No tests ran'; echo '0 passed, 0 failed, 0 skipped'", "echo fine",
                     "echo '0 passed, 0 failed, 9 skipped'",
                     "echo '9 passed, 1 failed, 0 skipped'"):
            self.write("nvfp4_test", text)
            self.assertFalse(self.take())
            self.assertEqual(first_hour.read(self.file)["selftest"]["why"], "no test passed")

    def test_what_was_said_is_on_the_disk_when_the_next_step_begins(self):
        self.write("check_random", f"grep -c verdict {self.file}")
        self.take()
        before = [step[0] for step in first_hour.STEPS].index("random")
        self.assertEqual(first_hour.read(self.file)["random"]["output"], [str(before)])

    def test_a_file_that_is_not_one_whole_run_is_refused(self):
        self.take()
        with open(self.file, encoding="utf-8") as file:
            lines = file.readlines()
        head, first = json.loads(lines[0]), json.loads(lines[1])
        def dump(line):
            return json.dumps(line) + "\n"
        for kept, says in (
                (lines[:5], "ends before variants"), (lines[1:], "no first hour"), ([], "no first"),
                (["[]\n"] + lines[1:], "no first hour"), (lines[:-1] + [lines[-1][:30]], "damaged"),
                ([dump({**head, "steps": ["info"]})] + lines[1:2], "no first hour"),
                (lines[:2] + ["[1]\n"] + lines[3:], "damaged"),
                (lines[:1] + [dump({"step": "info", "library": "x"})] + lines[2:], "damaged"),
                (lines[:2] + lines[1:], "or one twice"),
                (lines[:1] + [dump({**first, "library": "other"})] + lines[2:], "one library"),
                (lines[:1] + [dump({**first, "library": None})] + lines[2:], "one library")):
            with open(self.file, "w", encoding="utf-8") as file:
                file.writelines(kept)
            with self.subTest(says), self.assertRaisesRegex(ValueError, says):
                self.judge()

    def test_a_step_of_cuts_without_its_record_is_refused(self):
        for line in ("104 products by 5 variants, CTAs along K: 1 2", '{"products": 104}'):
            self.printing(line)
            self.assertTrue(self.take())
            with self.assertRaisesRegex(ValueError, "cuts has no record of its k_partitions"):
                self.judge()

    def test_only_hardware_of_ours_is_believed(self):
        for change, says in (({"emulated": True}, "nothing about hardware"),
                             ({"compute_capability": "8.9"}, "rows of host/plan/proofs.def"),
                             ({"compute_capability": "10.3"}, "about 9.0 and 10.0 and 12.0")):
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
