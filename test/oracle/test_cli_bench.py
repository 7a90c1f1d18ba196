# SPDX-License-Identifier: MIT
"""`nvfp4 bench` on a GPU: rows of every form say the same, and others' times stand beside ours
where cuBLASLt is installed."""
import csv
import io
import json
import os
import subprocess
import unittest

import nvfp4

PROGRAM = os.path.join(nvfp4.BUILD, "nvfp4")
# The machine's own driver, whatever this process runs on.
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, env=ENVIRONMENT)


def on_a_gpu():
    done = run("info", "--require-device")
    return done.returncode == 0 and "(emulated)" not in done.stdout


class Bench(unittest.TestCase):
    def setUp(self):
        if not on_a_gpu():
            self.skipTest("no GPU that the library serves")

    def test_rows_and_peers(self):
        shapes = ["16x512x1024", "2x256x512x3", "16x512x1040"]
        done = run("bench", "--json", *shapes)
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual([(r["m"], r["n"], r["k"], r["l"]) for r in answer["shapes"]],
                         [(16, 512, 1024, 1), (2, 256, 512, 3), (16, 512, 1040, 1)])
        single, batched, _ = answer["shapes"]
        self.assertLessEqual(single["us_p10"], single["us"])
        self.assertIsNone(batched["cublaslt_fp16_us"])  # a peer's batches would be others
        if answer["peers"].startswith("cuBLASLt"):
            for peer in ("cublaslt_fp16", "cublaslt_fp8"):
                self.assertAlmostEqual(single["x_" + peer] * single["us"], single[peer + "_us"], 2)
        else:
            self.assertIsNone(single["cublaslt_fp16_us"])

        done = run("bench", "--csv", *shapes)
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        self.assertEqual(set(rows[0]), set(single))
        self.assertEqual(rows[1]["cublaslt_fp16_us"], "")

    def test_alone(self):
        answer = json.loads(run("bench", "--json", "--alone", "16x512x1024").stdout)
        self.assertNotIn("cublaslt_fp16_us", answer["shapes"][0])
        self.assertEqual(answer["peers"], "not asked for")


if __name__ == "__main__":
    unittest.main()
