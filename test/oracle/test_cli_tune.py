# SPDX-License-Identifier: MIT
"""`nvfp4 tune` in the emulator: what it lists there and refuses there. Times and the choice by them
are tested in test/host/chooser.cc."""
import csv
import json
import os
import subprocess
import tempfile
import unittest

import nvfp4

PROGRAM = os.path.join(nvfp4.BUILD, "nvfp4")
EMULATOR = os.path.join(nvfp4.BUILD, "emulator")


def run(*arguments, device="H200"):
    environment = {**os.environ, "EMU_DEVICE": device, "LD_LIBRARY_PATH": EMULATOR}
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, env=environment)


class Tune(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "tuning.csv")

    def test_no_time_is_measured_in_the_emulator(self):
        done = run("tune", "8x256x256", "--out", self.path)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no time to measure here", done.stderr)
        self.assertFalse(os.path.exists(self.path))

    def test_bad_arguments(self):
        for arguments, word in [((), "which shapes"), (("8x256x256",), "--out"),
                                (("8x256", "--out", self.path), "no shape"),
                                (("8x256x40", "--out", self.path), "not a multiple of 16"),
                                (("8x256x256", "8x256x256x1", "--out", self.path), "twice"),
                                (("8x256x256", "--candidates", "--any-bits"), "--any-bits")]:
            done = run("tune", *arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(word, done.stderr)

    def test_candidates_that_give_the_same_bits_do(self):
        done = run("tune", "--candidates", "--json", "64x256x512", device="B200")
        self.assertEqual(done.returncode, 0, done.stderr)
        shape, = json.loads(done.stdout)["shapes"]
        self.assertIn("sm100_128x64x256", shape["planned"])
        same = {each["variant"]: each["same_bits"] for each in shape["candidates"]}
        self.assertTrue(same["sm100_256x128x256"])  # each adds K in the same order
        self.assertFalse(same["sm100_128x128x256/2"])  # but for parts of K
        self.assertNotIn("sm100_128x64x256/1", same)  # the planner's own by another name

    def test_every_k_that_the_library_takes(self):
        for device in ("H200", "B200"):
            done = run("tune", "--candidates", "--json", "8x32x48", device=device)
            self.assertEqual(done.returncode, 0, done.stderr)
            shape, = json.loads(done.stdout)["shapes"]
            self.assertEqual(shape["k"], 48)
            self.assertTrue(shape["candidates"])

    def test_every_variant_stands_beside_its_prediction(self):
        done = run("tune", "--candidates", "--every", self.path, "8x256x512", "1x10240x8192")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path, encoding="utf-8") as file:
            rows = [row for row in csv.reader(file) if row[0][0] not in "#m"]
        for (m, n, k, _, _, *plans), shape in zip(rows, (("8", "256", "512"),
                                                         ("1", "10240", "8192")), strict=True):
            self.assertEqual((m, n, k), shape)
            explained = json.loads(run("explain", "--gpu", "H200", "--json", "--m", m, "--n", n,
                                       "--k", k).stdout)
            chosen, predicted = plans[0].split()  # no times
            self.assertEqual(chosen.partition("+")[0],
                             f"{explained['variant']}/{explained['k_partitions']}")
            self.assertAlmostEqual(float(predicted), explained["predicted_ns"] / 1e3, places=2)
            named = dict(plan.split() for plan in plans)
            self.assertEqual(len(named), len(plans))
            self.assertIn("sm90_128x64x256/2", named)
            self.assertTrue(all(float(each) >= float(predicted) for each in named.values()))
        # CTAs that compute a tile and then a part of another.
        self.assertEqual(chosen.partition("/")[2], "2+132")

    def test_every_variant_is_no_table(self):
        for arguments in (("--out", self.path), ("--any-bits",)):
            done = run("tune", "8x256x256", "--every", self.path + "2", *arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn("--every", done.stderr)
        done = run("tune", "8x256x256", "--every", self.path)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no time to measure here", done.stderr)


if __name__ == "__main__":
    unittest.main()
