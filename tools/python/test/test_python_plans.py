# SPDX-License-Identifier: MIT
"""Which calls share a plan. nvfp4gemm._device as it is, on tensors of the processor, with calls of
the library that note what they get in place of those that need a GPU."""
import unittest
from unittest import mock

import package  # noqa: F401

from nvfp4gemm import abi
from nvfp4gemm._gemm import Gate, Numbers

# Two values of each number that a product has besides arrays. A new one needs a line here.
OF_ALL = {"alpha": (1.0, 2.0), "beta": (1.0, 0.5), "activation": ("silu", "relu"),
          "launch": (None, "early"), "batch_invariant": (False, True)}
OF_GATES = {"limit": (0.0, 7.0), "alpha": (0.0, 1.5), "beta": (0.0, 1.0)}


class Library:
    """Makes plans of descriptors, and runs them in `runs`."""

    def __init__(self, real):
        self.real, self.made, self.runs = real, 0, []

    def __getattr__(self, name):
        return getattr(self.real, name)

    def nvfp4_gemm_plan_create(self, _desc, handle):
        self.made += 1
        handle.value = self.made
        return 0

    nvfp4_grouped_plan_create = nvfp4_gemm_plan_create

    def nvfp4_gemm_plan_run(self, handle, _addresses, _stream):
        self.runs.append(handle.value)
        return 0


class Plans(unittest.TestCase):
    def setUp(self):
        try:
            import torch
            from nvfp4gemm import _device
        except (ImportError, AttributeError) as missing:
            self.skipTest(str(missing))
        import nvfp4gemm
        self.device, self.library = _device, Library(abi.lib)
        empty, plans = torch.empty, {}
        for target, name, value in (
                (abi, "lib", self.library), (_device, "_plans", plans),
                (_device, "_enter", lambda index: True), (_device, "_stream_of", lambda index: 0),
                (_device, "_capability", lambda device: 100),
                (_device, "_empty", lambda size, stride, dtype: empty(size, dtype=dtype)),
                (_device._Plan, "__del__", lambda plan: None),
                (torch, "empty", lambda size, dtype, device: empty(size, dtype=dtype))):
            patched = mock.patch.object(target, name, value)
            patched.start()
            self.addCleanup(patched.stop)
        self.addCleanup(plans.clear)  # while their end is patched, since their handles are none
        x = torch.arange(64 * 64, dtype=torch.float32).reshape(64, 64)
        self.a, self.b, self.up = (nvfp4gemm.quantize(x + i, 1.0) for i in range(3))
        self.x = nvfp4gemm.quantize(x, 1.0, scale_layout="linear")
        self.stack = nvfp4gemm.stack([self.b, self.up])
        self.ends = torch.tensor([8, 64], dtype=torch.int32)
        self.d = torch.zeros((64, 64), dtype=torch.float16)

    def each_has_its_own(self, made, values, first, run):
        """run() makes a plan for each value of each number, and none for one that was there."""
        other = [first._replace(**{name: two}) for name, (_, two) in values.items()]
        for one in (first, *other, first, *other):
            run(one)
        plans = self.library.runs[-2 * len(other) - 2:]
        half = len(plans) // 2
        self.assertEqual(len(set(plans)), half, values)
        self.assertEqual(plans[:half], plans[half:])
        self.assertEqual(set(values), set(made._fields) - {"b2", "bias2"})

    def test_every_number_has_a_plan_of_its_own(self):
        first = Numbers(*(OF_ALL[name][0] for name in Numbers._fields))
        gate = Gate(self.up, None, *(OF_GATES[name][0] for name in Gate._fields[2:]))
        operands = self.a, self.b, 64, abi.F16, None, None, None, abi.ROW_MAJOR
        self.each_has_its_own(Numbers, OF_ALL, first,
                              lambda numbers: self.device.mm(*operands, numbers))
        self.each_has_its_own(Numbers, OF_ALL, first,
                              lambda numbers: self.device.mm(*operands, numbers, gate))
        self.each_has_its_own(Gate, OF_GATES, gate,
                              lambda gate: self.device.mm(*operands, first, gate))

    def test_every_number_of_groups_too(self):
        first = Numbers(*(OF_ALL[name][0] for name in Numbers._fields))
        operands = self.x, self.stack, self.d, abi.ROW_MAJOR, None, None
        self.each_has_its_own(
            Numbers, OF_ALL, first,
            lambda numbers: self.device.grouped((*operands, numbers), self.ends, 0))
        before = self.library.made
        self.device.grouped((*operands, first), self.ends, 8)
        self.assertEqual(self.library.made, before + 1)


if __name__ == "__main__":
    unittest.main()
