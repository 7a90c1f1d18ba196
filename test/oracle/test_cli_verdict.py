# SPDX-License-Identifier: MIT
"""build/nvfp4 run: its verdict on results that are right but odd, and what it says of them."""
import json
import os
import resource
import subprocess
import sys
import unittest

import numpy as np

from test_cli import PROGRAM, run
from test_cli_files import InFolder


class Odd(unittest.TestCase):
    def passes(self, *arguments):
        done = run("run", "--m", "5", "--n", "70", "--k", "128", *arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("verdict   PASS", done.stdout)
        return [line[10:] for line in done.stdout.splitlines() if line.startswith("note ")]

    def test_any_alpha_passes_with_a_note_on_what_it_makes_of_d(self):
        notes = {"0": "are zero", "1e-45": "are zero", "-1e-30": "are zero", "inf": "are infinite",
                 "-inf": "are infinite", "3e38": "are infinite", "nan": "are NaN"}
        for data, alphas in (("gpumode", ("1e-45", "-inf")), ("random", notes),
                             ("exact", ("-1e-30", "3e38", "nan"))):
            for alpha in alphas:
                with self.subTest(data=data, alpha=alpha):
                    said = self.passes("--data", data, "--alpha", alpha)
                    self.assertIn(notes[alpha], "".join(said))
            self.assertEqual(self.passes("--data", data), [])

    def test_partly_infinite(self):
        notes = self.passes("--data", "random", "--alpha", "0.01")
        self.assertRegex("".join(notes), r"^\d+ of 350 elements of D are infinite")
        self.assertNotIn("350 of 350", "".join(notes))


class Matrices(InFolder):
    def run_on(self, a, b, *arguments):
        done = run("run", "--a", self.saved("a.npy", a), "--b", self.saved("b.npy", b), *arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("verdict   PASS", done.stdout)
        return done.stdout

    def test_nan_zeros_and_large_values_pass(self):
        rng = np.random.default_rng(3)
        a, b = (rng.standard_normal((rows, 128)).astype(np.float32) for rows in (3, 40))
        self.assertIn("120 of 120 elements of D are zero", self.run_on(np.zeros_like(a), b))
        some_nan = a.copy()
        some_nan[1, 7] = np.nan
        self.assertIn("40 of 120 elements of D are NaN", self.run_on(some_nan, b))
        infinite = a.copy()
        infinite[1, 7] = -np.inf
        self.run_on(infinite, b)
        self.assertIn("elements of D are infinite", self.run_on(1e4 * a, b))
        names = "--a", self.saved("a.npy", a * np.nan), "--b", self.saved("b.npy", b)
        self.assertEqual(json.loads(run("run", *names, "--json").stdout)["fp32_product"],
                         {"relative_error": None, "largest_error": None, "elements": 0})
        # Right within the bound, though elements near 0 are further off than 1e-3.
        wide = rng.standard_normal((64, 8192)).astype(np.float32)
        self.run_on(100 * wide, 3 * wide)

    def test_error_against_the_product_without_quantisation(self):
        rng = np.random.default_rng(4)
        a, b = (rng.standard_normal((rows, 320)).astype(np.float32) for rows in (9, 50))
        text = self.run_on(a, b, "--out", self.path("d.npy"), "--alpha", "0.5")
        want = 0.5 * (a.astype(np.float64) @ b.astype(np.float64).T)
        error = np.load(self.path("d.npy")) - want
        self.assertIn(f"fp32 product {np.linalg.norm(error) / np.linalg.norm(want):.4f} ", text)
        self.assertIn(f"largest {np.abs(error).max():.3g}\n", text)


# Runs its arguments, and writes the most KiB that they had in memory into the file named first. A
# process begins with the largest size of whoever starts it, exec or not: these tests have 500 MB.
RESIDENT = """import resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=open(sys.argv[1], "w"))
sys.exit(code)
"""


class Memory(InFolder):
    def refused(self, *command, words, **keywords):
        done = subprocess.run(command, capture_output=True, text=True, **keywords)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        for word in ("out of memory", *words):
            self.assertIn(word, done.stderr)

    def test_a_small_product_far_apart_in_memory(self):
        most = self.path("resident")
        mine = bytearray(b"x") * (512 << 20)  # More than is allowed below: it must not count.
        self.refused(sys.executable, "-S", "-c", RESIDENT, most,
                     PROGRAM, "run", "--m", "4", "--n", "4", "--k", "64", "--l", "4",
                     "--d-batch-stride", str(2**44),
                     words=["4 x 4 x 64 x 4 takes", "TiB", "are free"])
        del mine
        with open(most, encoding="ascii") as file:
            self.assertLess(int(file.read()), 512 * 1024)

    def test_the_limit_of_the_process_counts(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))
        self.refused(PROGRAM, "run", "--m", "32768", "--n", "32768", "--k", "64",
                     words=["GiB", "are free"], preexec_fn=limit)


class Log(unittest.TestCase):
    def test_a_level_that_is_none_is_said(self):
        for level in ("4", "-1", "7x", "high"):
            done = run("explain", NVFP4_LOG=level)
            self.assertEqual(done.returncode, 0)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(f"NVFP4_LOG={level} is not one of 0, 1, 2 and 3", done.stderr)
        for level in ("0", "1", "2", "3", ""):
            self.assertEqual(run("explain", NVFP4_LOG=level).stderr, "")

    def test_an_error_is_said_once_at_any_level(self):
        for level in ("0", "1", "2", "3"):
            done = run("run", "--variant", "best", NVFP4_LOG=level)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stderr.count("best"), 1, done.stderr)


class Json(unittest.TestCase):
    def test_one_report_for_every_problem(self):
        size = ("--n", "136", "--k", "192", "--data", "exact")
        problems = [("--m", "5"), ("--m", "5", "--activation", "relu"), ("--groups", "3,0,2")]
        reports = [json.loads(run("run", *size, *more, "--counters", "--json").stdout)
                   for more in problems]
        for report in reports:
            extra = {"groups", "b_shared"} & report.keys()
            self.assertEqual(report.keys() - extra, reports[0].keys())
            self.assertEqual((report["verdict"], report["notes"]), ("PASS", []))
            self.assertEqual(report["bits"]["equal"], report["bits"]["total"])
            self.assertTrue(report["counters"])
        self.assertEqual([report["epilogue"] for report in reports], ["fast", "general", "fast"])
        self.assertEqual([report["bits"]["unit"] for report in reports],
                         ["elements", "bytes", "elements"])

    def test_run_has_what_the_text_has(self):
        done = run("run", "--m", "65", "--n", "129", "--k", "320", "--data", "random", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        got = json.loads(done.stdout)
        self.assertEqual(got["shape"], {"m": 65, "n": 129, "k": 320, "l": 1})
        self.assertEqual(got["bits"]["total"], 65 * 129)
        self.assertEqual((got["bits"]["exact_sums"], got["error"]["outside_bound"]), (False, 0))
        self.assertLessEqual(got["error"]["largest_ratio"], 1)
        self.assertEqual((got["verdict"], got["notes"]), ("PASS", []))
        self.assertGreater(got["light_us"], 0)
        text = run("run", "--m", "65", "--n", "129", "--k", "320", "--data", "random").stdout
        for key in ("device", "image", "variant"):
            self.assertIn(f"{key:9} {got[key]}\n", text)
        self.assertIn(f"bound     {got['light_us']:.3f} us", text)

    def test_numbers_that_are_none_are_null(self):
        got = json.loads(run("run", "--alpha", "nan", "--json").stdout)
        self.assertIsNone(got["alpha"])
        self.assertEqual(len(got["notes"]), 1)

    def test_info(self):
        got = json.loads(run("info", "--json").stdout)
        text = run("info").stdout
        self.assertIn(f"CUDA {got['driver']}\n", text)
        for device in got["devices"]:
            self.assertIn(f"{device['name']}, compute capability {device['compute_capability']}",
                          text)
            self.assertEqual(device["obstacle"] is None, device["runs_the_kernels"])
        none = json.loads(run("info", "--json", LD_LIBRARY_PATH="").stdout)
        if none["driver"] is None:
            self.assertIn("no CUDA driver", none["obstacle"])

    def test_explain(self):
        arguments = ("explain", "--m", "1", "--n", "4096", "--k", "7168", "--gpu", "H200")
        got, text = json.loads(run(*arguments, "--json").stdout), run(*arguments).stdout
        self.assertEqual((got["compute_capability"], got["sms"]), ("9.0", 132))
        self.assertEqual(got["text"], text)
        self.assertEqual((got["image"], got["variant"]), ("sm_90a cubin", "sm90_64x1x256"))
        self.assertEqual(got["tile"], {"m": 1, "n": 64, "k": 256, "ctas": 1})
        self.assertEqual((got["proof"], got["store"], got["epilogue"]),
                         ("hardware", "threads", "fast"))
        self.assertEqual(got["bytes"], 4097 * 7168 * 9 // 16 + 2 * 4096)
        self.assertAlmostEqual(got["memory_ns"], got["bytes"] / 4800, places=3)
        self.assertGreater(got["predicted_ns"], got["memory_ns"])

    def test_a_variant_says_in_how_many_parts_k_is_cut(self):
        shape = ("--m", "128", "--n", "256", "--k", "1024", "--variant", "sm100_128x64x256/2")
        got = json.loads(run("explain", *shape, "--gpu", "B200", "--json").stdout)
        self.assertEqual((got["variant"], got["k_partitions"]), ("sm100_128x64x256", 2))
        self.assertEqual(got["proof"], "published")
        done = run("run", *shape, "--json", EMU_DEVICE="B200")
        self.assertEqual((done.returncode, json.loads(done.stdout)["verdict"]), (0, "PASS"))


if __name__ == "__main__":
    unittest.main()
