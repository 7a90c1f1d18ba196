# SPDX-License-Identifier: MIT
"""door_on_stub.py cpu|cuda: the table of test_python_door.py on the stub's tensors; a process of
its own, since the package keeps the torch that it met first."""
import sys

import package  # noqa: F401
import numpy as np
import torch_stub as torch

sys.modules["torch"] = torch

import nvfp4gemm  # noqa: E402

import door_table  # noqa: E402
import oddities  # noqa: E402
import test_python_door  # noqa: E402
from torch_kinds import OnTorch, TorchOdd  # noqa: E402


class Parameter(torch.Tensor):
    pass


class Functioning(torch.Tensor):
    @classmethod
    def __torch_function__(cls, *_):
        raise NotImplementedError


class Dispatching(torch.Tensor):
    @classmethod
    def __torch_dispatch__(cls, *_):
        raise NotImplementedError


def placed_on(device):
    def place(odd):
        if device == "cpu":
            return TorchOdd(torch.from_numpy(odd.array), odd.memory, odd)
        array, memory = torch.to_device(odd.array, odd.memory)
        return TorchOdd(array, memory, odd)
    return place


def makers(place):
    def fresh(values):
        return place(oddities.dense(values)).array

    def with_(**attributes):
        def make(values):
            array = fresh(values)
            for name, value in attributes.items():
                setattr(array, name, value)
            return array
        return make

    def of_class(kind):
        def make(values):
            array = fresh(values)
            return kind(array.array, array.storage)
        return make

    def floats_alone(make):
        return lambda values: make(values) if values.itemsize > 1 else None

    def negated(values):
        array = fresh(-values)
        array.negative = True
        return array

    def left(share):
        def make(values):
            array = fresh(values)
            array.storage.resize_(int(array.storage.nbytes() * share))
            return array
        return make

    def elsewhere(values):
        array = fresh(values)
        array.storage.device = torch.Device("meta")
        return array

    return {
        "requires a gradient": lambda values: None,  # has operators of torch
        "a parameter": of_class(Parameter),
        "made in inference mode": with_(inference=True),
        "a negation is pending": floats_alone(negated),
        "no memory left": left(0),
        "half of its memory left": left(0.5),
        "sparse": with_(layout=torch.sparse_coo),
        "nested": with_(is_nested=True),
        "on the meta device": elsewhere,
        "a class with a dispatch of its own": of_class(Dispatching),
        "a class with a function of its own": of_class(Functioning),
        "an array of NumPy": np.array,
    }


class Table(test_python_door.Table):
    place = staticmethod(placed_on(sys.argv[1]))
    kind = OnTorch(sys.argv[1], place, makers(place))

    def test_scales_of_what_has_no_elements_are_1(self):
        for shape in ((6, 0), (0, 32)):
            for by in (None, "rows"):
                x = self.place(oddities.dense(np.ones(shape, np.float16))).array
                scale = nvfp4gemm.quantize(x, by).tensor_scale
                values = np.asarray(scale.numpy() if hasattr(scale, "numpy") else scale)
                self.assertEqual(values.reshape(-1).tolist(), [1.0] * values.size)

    def test_weights_are_packed_and_unpacked_where_they_lie(self):
        there, here = (door_table.Operands(kind) for kind in (self.kind, test_python_door.OnNumpy))
        packed, expected = there.packed(there.b).pack(), here.b.pack()
        self.assertEqual(packed.scales.numpy().tobytes(), expected.scales.tobytes())
        for layout in "linear", "128x4":
            again, plain = packed.with_scales(layout), here.b.with_scales(layout)
            self.assertEqual(again.scales.numpy().tobytes(), plain.scales.tobytes())
            self.assertEqual(again.codes.numpy().tobytes(), plain.codes.tobytes())

    def test_tensor_scales_of_groups(self):
        """The device's products beside those of NumPy's arrays, each group's rows with its own
        tensor scale."""
        there, here = (door_table.Operands(kind) for kind in (self.kind, test_python_door.OnNumpy))
        scales = np.array([0.5, 2], np.float32)

        def products(o, of):
            def stack(scale):
                return o.stack(tensor_scale=scale if isinstance(scale, float) else of(scale))

            def out():
                return of(np.zeros((door_table.M, door_table.N), np.float32))

            x, ends = o.packed(o.a.with_scales("linear"), scale_layout="linear"), of(o.ends)
            for scale in (scales, 1.0, scales):  # plans that no other test makes: none fits both
                yield nvfp4gemm.grouped_linear(of(o.x), ends, stack(scale), out=out(), rows_hint=5)
            yield nvfp4gemm.grouped_linear(x, ends, stack(scales), alpha=0.25, out=out())
            for gate, up in ((scales, 0.25), (0.25, scales), (scales, scales[::-1].copy())):
                yield nvfp4gemm.grouped_gated_linear(x, ends, stack(gate), stack(up), out=out())

        for found, expected in zip(products(there, self.kind.of), products(here, np.array)):
            self.assertTrue(np.isfinite(expected).all() and expected.any(1).all())
            np.testing.assert_allclose(np.asarray(found.numpy()), expected, rtol=1e-5)

    def test_memory_given_back_after_a_packed_was_made(self):
        o = door_table.Operands(self.kind)
        for part in ("codes", "scales"):
            for p in (o.packed(o.a), o.packed(o.b)):
                call = {True: lambda: nvfp4gemm.mm(p, o.pb), False: lambda: nvfp4gemm.mm(o.pa, p)}
                call = call[p.rows == door_table.M]
                before = call().numpy().copy()
                storage = getattr(p, part).untyped_storage()
                size = storage.nbytes()
                storage.resize_(0)
                with self.assertRaisesRegex(ValueError, f"{part} is .* no memory of its own"):
                    call()
                storage.resize_(size)
                self.assertEqual(call().numpy().tobytes(), before.tobytes())


if __name__ == "__main__":
    test_python_door.unittest.main(argv=[sys.argv[0], "Table", *sys.argv[2:]])
