# SPDX-License-Identifier: MIT
"""A library with the images of some GPUs alone: GPUS of the Makefile, and the library of `make
run`, which has the Blackwell PTX on a machine without a GPU."""
import json
import os
import subprocess
import tempfile
import unittest

import nvfp4

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SMALL = os.path.join(nvfp4.BUILD, "run", "nvfp4")


def images(*arguments):
    done = subprocess.run([os.path.join(ROOT, "kernel", "images.sh"), *arguments],
                          capture_output=True, text=True, check=True)
    return done.stdout.split()


def built(*arguments):
    return {name for name, _, here in (row.split(":") for row in images(*arguments)) if here == "1"}


class Choice(unittest.TestCase):
    def test_a_gpu_brings_the_images_that_serve_it(self):
        self.assertEqual(built("89"), {"mma_sm_80", "mma_compute_80", "quantize_compute_80"})
        self.assertEqual(built("121"), {"sm_120f", "compute_120f", "mma_sm_120", "mma_compute_80",
                                        "quantize_sm_120f", "quantize_compute_120f",
                                        "quantize_compute_80"})
        self.assertEqual(built("121"), built("120"))
        # 10.0, 10.3 and 10.7 share images; a Hopper under an older driver has those for 8.0.
        self.assertLess(built("107"), built("100"))
        self.assertLess({"sm_90a", "compute_90a", "mma_compute_80", "quantize_sm_90"}, built("90"))
        self.assertEqual(built("100 90"), built("100") | built("90"))
        self.assertEqual(len(built("all")), len(images("all")))
        self.assertEqual(built("100", "ptx"), {"compute_100f", "quantize_compute_100f"})

    def test_an_unknown_gpu_stops_make_with_those_that_are_known(self):
        for gpus in ("99", "90 sm_100", ""):
            done = subprocess.run(["make", "-n", "library", f"GPUS={gpus}"], cwd=ROOT, text=True,
                                  capture_output=True, env={**os.environ, "MAKEFLAGS": ""})
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f'GPUS="{gpus}": known compute capabilities are 100 103 90', done.stderr)

    def test_make_run_looks_for_gpus_with_kernels_for_nvfp4_tokens(self):
        with tempfile.TemporaryDirectory() as folder:
            stand_in = os.path.join(folder, "nvidia-smi")
            for shown, found in (("9.0\\n8.0\\n10.0\\n9.0", "100 90"), ("12.0\\n12.1", "120 121"),
                                 ("8.9\\n11.0\\n7.5", "")):
                with open(stand_in, "w", encoding="utf-8") as file:
                    file.write(f"#!/bin/sh\nprintf '{shown}\\n'\n")
                os.chmod(stand_in, 0o755)
                done = subprocess.run([os.path.join(ROOT, "tools", "setup", "gpus.sh")], text=True,
                                      capture_output=True, check=True,
                                      env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
                self.assertEqual(done.stdout.strip(), found)

    def test_the_folder_has_an_empty_file_for_each_other_image(self):
        with tempfile.TemporaryDirectory() as folder:
            to = os.path.join(folder, "to")
            given = os.path.join(folder, "from")
            os.mkdir(given)
            refused = subprocess.run([os.path.join(ROOT, "kernel", "images.sh"), "80", given, to],
                                     capture_output=True, text=True, check=False)
            self.assertEqual(refused.returncode, 2)
            self.assertIn("has no gemm_sm80.sm_80.cubin.fatbin", refused.stderr)
            for name in ("gemm_sm80.sm_80.cubin.fatbin", "gemm_sm80.ptx.fatbin",
                         "quantize_sm80.ptx.fatbin", "compiler.txt"):
                with open(os.path.join(given, name), "w", encoding="utf-8") as file:
                    file.write(name)
            images("80", given, to)
            empty = {name for name in os.listdir(to) if not os.path.islink(os.path.join(to, name))}
            self.assertEqual(len(os.listdir(to)) - len(empty), 3)
            self.assertEqual(os.readlink(os.path.join(to, "gemm_sm80.ptx.fatbin")),
                             "../from/gemm_sm80.ptx.fatbin")
            self.assertTrue(all(os.path.getsize(os.path.join(to, name)) == 0
                                for name in empty - {"gpus.txt", "compiler.txt"}))


class Small(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(os.path.dirname(SMALL), "gpus.txt"), encoding="utf-8") as file:
            gpus = file.read().strip()
        if gpus:
            self.skipTest(f"this machine's library has the images of {gpus}")

    def run_on(self, device, *arguments):
        emulator = os.path.join(nvfp4.BUILD, "emulator")
        return subprocess.run([SMALL, *arguments], capture_output=True, text=True,
                              env={**os.environ, "EMU_DEVICE": device,
                                   "LD_LIBRARY_PATH": emulator})

    def test_it_runs_on_its_gpu_alone(self):
        product = ("run", "--m", "1", "--n", "128", "--k", "64", "--json")
        done = self.run_on("B200", *product)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["image"], "compute_100f PTX")
        for device, number in (("H200", 90), ("A100", 80), ("B200", 100)):
            done = self.run_on(device, *product, "--a-type", "bf16")
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn('GPUS="100 by the PTX for NVFP4 tokens alone"', done.stderr)
            self.assertIn(f"GPUS={number}", done.stderr)
        device, = json.loads(self.run_on("B200", "info", "--json").stdout)["devices"]
        self.assertTrue(device["runs_the_kernels"])
        self.assertEqual(device["tokens"], ["NVFP4"])

    def test_it_says_how_it_was_built(self):
        told = json.loads(self.run_on("B200", "info", "--json").stdout)["library"]
        self.assertIn('for GPUS="100 by the PTX for NVFP4 tokens alone", compute_100f PTX', told)
        self.assertNotIn("cubin", told)
        plan = self.run_on("B200", "explain", "--gpu", "H200", "--m", "1", "--n", "128",
                           "--k", "64")
        self.assertIn("none in this library", plan.stdout)


if __name__ == "__main__":
    unittest.main()
