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
    from torch.utils.flop_counter import FlopCounterMode
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


def of_products(o):
    """The rows of products, among them those of the layers."""
    layer = nn.Linear(o.pb, o.of(o.bias))
    for rows in (door_table.read_by_calls, door_table.written_by_calls):
        yield from (row for row in rows(o) if not row.entry.startswith("quantize"))
    for x in (o.x, o.cube):
        yield Argument("nn.Linear", "x", x, lambda v: (layer(v),), equal=door_table.FREE)


class Otherwise:
    """The rows of products, every column, where a call is no call at once. `through(call, array)`
    makes it; `refused` is what it may raise, which names the argument as a call at once does."""
    left_out = ()  # columns
    refused, nameless = test_python_door.REFUSED, ()

    def arguments(self):
        return of_products(door_table.Operands(self.kind))

    def verdict(self, row, name, column):
        return "raises" if row.name in MAXIMA else row.verdict(name, column)

    def test_every_oddity(self):
        cells = 0
        for row in self.arguments():
            for name, column in self.kind.columns.items():
                if name in self.left_out:
                    continue
                with self.subTest(f"{row}: {name}"):
                    found = test_python_door.cell(self.kind, row, column, self.through,
                                                  self.refused, self.nameless)
                    if found is not None:
                        self.assertEqual(found, self.verdict(row, name, column))
                        cells += 1
        self.assertGreater(cells, 200)


# Without an operator, and said to be.
MAXIMA = ("amax", "row_amax")


class CastOnTheCpu(Otherwise, unittest.TestCase):
    """In torch.autocast, to the type that the operands have."""
    kind = OnTheCpu.kind

    def through(self, call, array):
        with torch.autocast(self.kind.device, torch.float16):
            return call(array)


class WithAGradientOnTheCpu(Otherwise, unittest.TestCase):
    """Where an operand requires a gradient: the array itself, or x where the array is written."""
    kind = OnTheCpu.kind

    def arguments(self):
        o, of = door_table.Operands(self.kind), self.kind.of
        read, written = list(of_products(o)), door_table.Operands(self.kind)
        written.of = lambda values: wanting(of(values))
        for row in [row for row in read if row.way == door_table.READ] + list(
                door_table.written_by_calls(written)):
            of_two_packed = row.entry == "mm" and row.name in ("out", "row_amax")
            if "mm" in row.entry or "linear" == row.entry[:6] or row.entry == "nn.Linear":
                if row.way == door_table.WRITTEN and not of_two_packed:
                    row.name += "|x|a"  # which is refused before
                if not of_two_packed:
                    yield row

    def through(self, call, array):
        return call(wanting(array))

    def verdict(self, row, name, column):
        by_columns = row.entry == "mm by columns"  # into an out, so that c may require none
        if by_columns and name == "made in inference mode":
            return "equal"  # which cannot require one
        return "raises" if row.way == door_table.WRITTEN or by_columns else (
            row.verdict(name, column))


def wanting(array):
    """The array, which from now on requires a gradient where it can."""
    if isinstance(array, torch.Tensor) and array.dtype.is_floating_point and (
            array.is_leaf and not array.is_inference()):
        array.requires_grad_()
    return array


class WatchedOnTheCpu(Otherwise, unittest.TestCase):
    """In a mode of torch that sees every operator."""
    kind = OnTheCpu.kind

    def through(self, call, array):
        with FlopCounterMode(display=False):
            return call(array)


class Compiled(Otherwise):
    """As one graph. What torch.compile hands no operator, or looks at itself, is refused in words
    of torch."""
    refused, nameless = (Exception,), (torch._dynamo.exc.Unsupported,)
    left_out = ("a class with a function of its own", "a class with a dispatch of its own",
                "made in inference mode", "a list")
    rows = ("linear, x [6, 32]", "linear, 4-bit x, x|k [6, 32]", "linear, bias [10]",
            "mm, c [6, 10]", "mm by columns, c [6, 10]", "gated_linear, x [6, 32]",
            "gated_linear, gate_bias [10]", "gated_linear, up_bias [10]",
            "grouped_linear, x [6, 32]", "grouped_linear, ends [2]", "grouped_linear, bias [10]",
            "linear, out [6, 10]", "mm, out [2, 3, 10]", "gated_linear, out [6, 10]",
            "grouped_linear, out [6, 10]", "mm, amax [1]")

    def arguments(self):
        rows = {str(row): row for row in super().arguments()}
        return [rows[name] for name in self.rows]

    def verdict(self, row, name, column):
        if name == "a negation is pending" and row.way == door_table.WRITTEN and (
                row.name not in MAXIMA):
            return "equal"  # torch writes it
        return super().verdict(row, name, column)

    def through(self, call, array):
        torch._dynamo.reset()
        return torch.compile(call, fullgraph=True, backend="aot_eager", dynamic=False)(array)


class Shared(unittest.TestCase):
    """An out over what is read, in each mode."""

    def setUp(self):
        self.o = o = door_table.Operands(OnTheCpu.kind)
        self.ends, self.stack = o.of(o.ends), o.stack()

    def modes(self):
        for of in (CastOnTheCpu, WatchedOnTheCpu, Compiled):
            yield of.__name__, lambda call, *arrays, of=of: of.through(of, call, *arrays)

    def test_is_refused(self):
        m, n, k = door_table.M, door_table.N, door_table.K
        o, w, up = self.o, self.o.pb, self.o.pb2
        calls = (lambda x, out: nvfp4gemm.linear(x, w, out=out),
                 lambda x, out: nvfp4gemm.mm(x, w, c=out[:1].expand(m, n), out=out),
                 lambda x, out: nvfp4gemm.gated_linear(x, w, up, out=out),
                 lambda x, out: nvfp4gemm.grouped_linear(x, self.ends, self.stack, out=out))
        for name, through in self.modes():
            for i, call in enumerate(calls):
                memory = torch.ones(m * k + m * n, dtype=torch.float16)
                x, begin = memory[:m * k].view(m, k), m * k if i == 1 else m * k - 8
                out = memory[begin:begin + m * n].view(m, n)
                with self.subTest(mode=name, call=i), self.assertRaisesRegex(
                        Exception, "out shares memory with what is read"):
                    through(lambda x: call(x, out), x)
                self.assertTrue((memory == 1).all())

    def test_c_may_be_out(self):
        x, w = self.o.of(self.o.x), self.o.pb
        expected = nvfp4gemm.mm(x, w, c=torch.ones(door_table.M, door_table.N))
        for name, through in self.modes():
            with self.subTest(name):
                out = torch.ones_like(expected).float()
                through(lambda x: nvfp4gemm.mm(x, w, torch.float32, c=out, out=out), x)
                self.assertTrue(torch.equal(out.to(expected.dtype), expected))


class CompiledOut(unittest.TestCase):
    """What once ended the process, wrote past its memory, or wrote other values."""

    def test_an_out_that_a_call_at_once_refuses(self):
        kind = OnTheCpu.kind
        row, = (row for row in of_products(door_table.Operands(kind))
                if str(row) == "linear, out [6, 10]")
        for name in ("dense", "by columns", "no memory left", "half of its memory left",
                     "rows that overlap"):
            with self.subTest(name):
                column = kind.columns[name]
                found = test_python_door.cell(kind, row, column, Compiled().through, (Exception,))
                self.assertEqual(found, row.verdict(name, column))


@unittest.skipUnless(LONG, "a minute; NVFP4_LONG=1, or this file by itself")
class CompiledOnTheCpu(Compiled, unittest.TestCase):
    kind = OnTheCpu.kind

    def test_an_operator_of_the_meta_device_alone_is_on_the_meta_device(self):
        o = door_table.Operands(self.kind)
        codes, scales = o.pb.codes.to("meta"), o.pb.scales.to("meta")
        a = torch.empty(3, door_table.K, dtype=torch.float16, device="meta")
        nvfp4gemm._optional.ops  # imports them
        y = torch.ops.nvfp4gemm.mm(a, None, None, 1.0, "", "", codes, scales, None, 1.0, "128x4",
                                   "nvfp4", door_table.K, None, None, None, None, 1.0, 1.0, False,
                                   None, None)
        self.assertEqual((y.device.type, tuple(y.shape)), ("meta", (3, door_table.N)))


@unittest.skipUnless(LONG and HOPPER, WHY_NOT or "a minute, on compute capability 9.0")
class CompiledOnTheGpu(Compiled, unittest.TestCase):
    kind = OnTheGpu.kind


@unittest.skipUnless(HOPPER, WHY_NOT or "16-bit activations: compute capability 9.0")
class CapturedOnTheGpu(Otherwise, unittest.TestCase):
    kind = OnTheGpu.kind

    def arguments(self):
        return [row for row in super().arguments() if row.way == door_table.READ and
                row.entry.startswith(("mm", "linear"))]

    def verdict(self, row, name, column):
        return row.verdict(name, column)

    def through(self, call, array):
        call(array)  # plans, and the kernels of copies, are made before
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            results = call(array)
        for y in results:
            y.detach().zero_()  # a view of what a Function returned refuses it
        graph.replay()
        return results


@unittest.skipUnless(HOPPER, WHY_NOT or "16-bit activations: compute capability 9.0")
class CastOnTheGpu(CastOnTheCpu):
    kind = OnTheGpu.kind


@unittest.skipUnless(HOPPER, WHY_NOT or "16-bit activations: compute capability 9.0")
class WithAGradientOnTheGpu(WithAGradientOnTheCpu):
    kind = OnTheGpu.kind


@unittest.skipUnless(HOPPER, WHY_NOT or "16-bit activations: compute capability 9.0")
class WatchedOnTheGpu(WatchedOnTheCpu):
    kind = OnTheGpu.kind


del test_python_door.Table, WithLayers  # the tables above are this file's tests


if __name__ == "__main__":
    unittest.main()
