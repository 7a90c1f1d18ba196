# SPDX-License-Identifier: MIT
"""What the tests on GPUs say where they are skipped; needs no torch."""
import os
import types
import unittest
import unittest.mock

import package  # noqa: F401

import gpus


def torch(count, error=None):
    def init():
        if error:
            raise error
    return types.SimpleNamespace(
        cuda=types.SimpleNamespace(device_count=lambda: count, init=init))


class WhyNot(unittest.TestCase):
    def test_a_real_driver_with_gpus_enough_is_used(self):
        for wanted in (1, 2):
            self.assertEqual(gpus.why_not(torch(2), wanted, object), "")

    def test_too_few_are_counted(self):
        for count in (0, 1):
            self.assertIn(f"counts {count} GPUs, 2 needed", gpus.why_not(torch(count), 2, object))

    def test_the_emulator_is_no_gpu(self):
        def load():
            return gpus.ctypes.CDLL(os.path.join(package.BUILD, "emulator/libcuda.so.1"))
        self.assertIn("is the emulator", gpus.why_not(torch(2), 2, load))

    def test_what_torch_says_is_said(self):
        for error in (RuntimeError("no driver"), AssertionError("not compiled with CUDA")):
            self.assertIn(f"cannot use them: {error}", gpus.why_not(torch(2, error), 2, object))

    def test_no_driver_is_said(self):
        def load():
            raise OSError("libcuda.so.1: cannot open")
        self.assertIn("libcuda.so.1: cannot open", gpus.why_not(torch(2), 2, load))

    def test_one_gpu_that_is_needed_is_there_or_an_error(self):
        with unittest.mock.patch.dict(os.environ, {"NVFP4_GPU_NEEDED": "1"}):
            self.assertEqual(gpus.why_not(torch(1), 1, object), "")
            self.assertNotEqual(gpus.why_not(torch(1), 2, object), "")
            with self.assertRaisesRegex(AssertionError, "NVFP4_GPU_NEEDED .* counts 0 GPUs"):
                gpus.why_not(torch(0), 1, object)


if __name__ == "__main__":
    unittest.main()
