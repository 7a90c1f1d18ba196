# SPDX-License-Identifier: MIT
"""The table of test_python_door.py on torch's own tensors: on the CPU wherever torch is, and on a
GPU where torch finds one (`make check-hw PART=python`); then the same calls compiled and
captured."""
import os
import tempfile
import unittest

import package  # noqa: F401
import numpy as np

try:
    import torch
    import torch.distributed as dist
except ImportError as error:
    raise unittest.SkipTest("this Python has no torch") from error

import gpus
import nvfp4gemm
from nvfp4gemm import nn, parallel

import door_table
import test_python_door
from door_table import Argument
from torch_kinds import OnTorch, TorchOdd

WHY_NOT = gpus.why_not(torch, 1)
LONG = os.environ.get("NVFP4_LONG") or __name__ == "__main__"
HOPPER = not WHY_NOT and torch.cuda.get_device_capability() == (9, 0)


class OwnFunction(torch.Tensor):
    """A subclass that only looks at calls: its elements are where a tensor's are."""


class OwnDispatch(torch.Tensor):
    """A wrapper, as tensors of several devices are: it has no elements."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype,
                                                   device=inner.device)

    @classmethod
    def __torch_dispatch__(cls, function, *_):
        raise NotImplementedError(str(function))


def placed_on(device):
    def place(odd):
        view, memory = odd.array, odd.memory
        if device == "cpu":
            return TorchOdd(torch.from_numpy(view), memory, odd)
        there, size = torch.empty(memory.size, dtype=torch.uint8, device=device), view.itemsize
        there.copy_(torch.from_numpy(memory.copy()))
        typed = there[:memory.size // size * size].view(torch.from_numpy(view[:0] if view.ndim else
                                                                         view.reshape(1)).dtype)
        offset = (view.ctypes.data - memory.ctypes.data) // size if view.size else 0
        return TorchOdd(typed.as_strided(view.shape, [s // size for s in view.strides], offset),
                        there, odd)
    return place


def makers(device):
    def fresh(values):
        return torch.from_numpy(np.array(values)).clone().to(device)

    def floats(make):
        return lambda values: make(values) if values.itemsize > 1 else None

    def left(share):
        def make(values):
            array = fresh(values)
            storage = array.untyped_storage()
            storage.resize_(int(storage.nbytes() * share))
            return array
        return make

    def inferred(values):
        with torch.inference_mode():
            return fresh(values)

    def sparse(values):
        return fresh(values).to_sparse() if values.ndim else None

    def nested(values):
        return torch.nested.nested_tensor(list(fresh(values))) if values.ndim > 1 else None

    return {
        "requires a gradient": lambda v: (
            fresh(v).requires_grad_() if v.dtype.kind == "f" else None),
        "a parameter": lambda v: torch.nn.Parameter(fresh(v), requires_grad=False),
        "made in inference mode": inferred,
        "a negation is pending": floats(lambda v: torch._neg_view(fresh(-v))),
        "no memory left": left(0),
        "half of its memory left": left(0.5),
        "sparse": sparse,
        "nested": nested,
        "on the meta device": lambda v: fresh(v).to("meta"),
        "a class with a dispatch of its own": lambda v: OwnDispatch(fresh(v)),
        "a class with a function of its own": lambda v: fresh(v).as_subclass(OwnFunction),
        "an array of NumPy": np.array,
    }


class WithLayers(test_python_door.Table):
    """The rows of all kinds, and those of torch's modules."""

    def arguments(self):
        yield from super().arguments()
        o = door_table.Operands(self.kind)
        bias = self.kind.of(o.bias)
        layer = nn.Linear(o.pb, bias)
        for x in (o.x, o.cube):
            yield Argument("nn.Linear", "x", x, lambda v: (layer(v),), equal=door_table.FREE)
        yield Argument("nn.Linear", "bias", o.bias,
                       lambda v: (nn.Linear(o.pb, v)(self.kind.of(o.x)),))
        for kind in (parallel.ColumnLinear, parallel.RowLinear):
            part = kind(layer)
            yield Argument(kind.__name__, "x", o.x, lambda v, part=part: (part(v),),
                           equal=door_table.FREE, raises=("requires a gradient",))

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        dist.init_process_group("gloo", init_method=f"file://{folder.name}/meet", rank=0,
                                world_size=1)
        self.addCleanup(dist.destroy_process_group)


class OnTheCpu(WithLayers):
    kind = OnTorch("cpu", placed_on("cpu"), makers("cpu"))


@unittest.skipUnless(HOPPER, WHY_NOT or "16-bit activations: compute capability 9.0")
class OnTheGpu(WithLayers):
    kind = OnTorch("cuda", placed_on("cuda"), makers("cuda"))


class Transforms(unittest.TestCase):
    def test_what_torch_func_wraps_is_refused(self):
        o = door_table.Operands(OnTheCpu.kind)
        x = OnTheCpu.kind.of(np.stack([o.x, o.x]))

        def layer(v):
            return nvfp4gemm.linear(v, o.pb)

        for call in (lambda: torch.vmap(layer)(x), lambda: torch.func.functionalize(layer)(x)):
            with self.assertRaisesRegex(ValueError, "x is .* no memory of its own"):
                call()


class Otherwise:
    """Arguments of linear and mm, every column, where the call is not made at once. `through(call)`
    is what takes its place; `refused` what it may raise."""
    left_out = test_python_door.FREE_OF_THE_TABLE

    def arguments(self):
        o = door_table.Operands(self.kind)
        bias, c = self.kind.of(o.bias), self.kind.of(o.c)
        x = self.kind.of(o.x)
        return [("x", o.x, lambda v: nvfp4gemm.linear(v, o.pb, bias, quantize_input=True)),
                ("x of 16 bits", o.x, lambda v: nvfp4gemm.linear(v, o.pb)),
                ("bias", o.bias, lambda v: nvfp4gemm.linear(x, o.pb, v)),
                ("c", o.c, lambda v: nvfp4gemm.mm(o.pa, o.pb, bias=bias, c=v))]

    def test_every_oddity(self):
        equal = 0
        for name, values, call in self.arguments():
            for oddity, column in self.kind.columns.items():
                odd = column.make(values)
                if odd is None or oddity in self.left_out:
                    continue
                with self.subTest(f"{name}: {oddity}"):
                    if column.verdict[door_table.READ] == "equal":
                        y, expected = self.through(call, odd.array), call(
                            test_python_door.fresh(self.kind, odd.array))
                        self.assertTrue(torch.equal(y, expected))
                        equal += 1
                    else:
                        with self.assertRaises(self.refused):
                            self.through(call, odd.array)
        self.assertGreater(equal, 20)


@unittest.skipUnless(LONG, "half a minute; NVFP4_LONG=1, or this file by itself")
class CompiledOnTheCpu(Otherwise, unittest.TestCase):
    kind = OnTheCpu.kind
    refused = (Exception,)  # of any of torch's layers, which name the operator
    # torch.compile hands its own operators no such class either.
    left_out = Otherwise.left_out + ("a class with a function of its own",)

    def test_an_operator_of_the_meta_device_alone_is_on_the_meta_device(self):
        o = door_table.Operands(self.kind)
        codes, scales = o.pb.codes.to("meta"), o.pb.scales.to("meta")
        a = torch.empty(3, door_table.K, dtype=torch.float16, device="meta")
        nvfp4gemm._optional.ops  # imports them
        y = torch.ops.nvfp4gemm.mm(a, None, None, 1.0, "", "", codes, scales, None, 1.0, "128x4",
                                   "nvfp4", door_table.K, None, None, None, None, 1.0, 1.0, False,
                                   None, None)
        self.assertEqual((y.device.type, tuple(y.shape)), ("meta", (3, door_table.N)))

    def through(self, call, array):
        torch._dynamo.reset()
        return torch.compile(call, fullgraph=True, backend="aot_eager", dynamic=False)(array)


@unittest.skipUnless(HOPPER, WHY_NOT or "16-bit activations: compute capability 9.0")
class CompiledOnTheGpu(CompiledOnTheCpu):
    kind = OnTheGpu.kind


@unittest.skipUnless(HOPPER, WHY_NOT or "16-bit activations: compute capability 9.0")
class CapturedOnTheGpu(Otherwise, unittest.TestCase):
    kind = OnTheGpu.kind
    refused = test_python_door.REFUSED

    def through(self, call, array):
        call(array)  # plans, and the kernels of copies, are made before
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = call(array)
        y.zero_()
        graph.replay()
        return y


del test_python_door.Table, WithLayers  # the tables above are this file's tests


if __name__ == "__main__":
    unittest.main()
