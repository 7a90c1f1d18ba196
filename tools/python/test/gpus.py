# SPDX-License-Identifier: MIT
"""Whether torch has GPUs to run on. Its count of them may come from NVML, which neither a driver
that cannot be initialised nor the emulator in the driver's place changes."""
import ctypes
import os
import unittest


def load_driver():
    return ctypes.CDLL("libcuda.so.1")


def why_not(torch, wanted, load=load_driver):
    """What keeps torch from running on so many GPUs; "" where nothing does. With NVFP4_GPU_NEEDED
    in the environment, tests of one GPU cannot be skipped."""
    reason = _why_not(torch, wanted, load)
    if reason and wanted == 1 and os.environ.get("NVFP4_GPU_NEEDED"):
        raise AssertionError(f"NVFP4_GPU_NEEDED is set, but {reason}")
    return reason


def _why_not(torch, wanted, load):
    counted = torch.cuda.device_count()
    if counted < wanted:
        return f"torch counts {counted} GPUs, {wanted} needed"
    try:
        if hasattr(load(), "nvfp4emu_calls"):
            return "libcuda.so.1 is the emulator, on which torch cannot run"
        torch.cuda.init()
    except (OSError, RuntimeError, AssertionError) as error:
        return f"torch counts {counted} GPUs and cannot use them: {error}"
    return ""


class OnTorch(unittest.TestCase):
    """Tests on the processor, and on a Hopper GPU where torch has one; skipped without torch."""

    def setUp(self):
        try:
            import torch
        except ImportError as missing:
            self.skipTest(str(missing))
        self.torch = torch
        hopper = not why_not(torch, 1) and torch.cuda.get_device_capability() == (9, 0)
        self.devices = ["cpu", "cuda"] if hopper else ["cpu"]
