# SPDX-License-Identifier: MIT
"""Packed.pack() and nn.Linear.pack() on the CPU, where the library's reference multiplies, and on a
GPU of 9.0 if there is one: the bits of the same weights without packing."""
import copy
import unittest

import package  # noqa: F401
import numpy as np

import nvfp4gemm
from nvfp4gemm import Packed

try:
    import torch
    from nvfp4gemm import nn
except ImportError:
    torch = None


def weights(n=200, k=96, seed=1, format="nvfp4"):
    x = np.random.default_rng(seed).standard_normal((n, k), np.float32)
    return nvfp4gemm.quantize(x, format=format)


class OfNumpy(unittest.TestCase):
    def equal(self, one, other):
        self.assertEqual((one.shape, one.scale_layout, one.format), (
            other.shape, other.scale_layout, other.format))
        np.testing.assert_array_equal(one.codes, other.codes)
        np.testing.assert_array_equal(one.scales, other.scales)

    def test_unpacking_returns_what_was_packed(self):
        for format in "nvfp4", "mxfp4", "e2m1_ue8m0":
            for layout in "128x4", "linear":
                with self.subTest(format=format, layout=layout):
                    w = weights(format=format).with_scales(layout)
                    packed = w.pack()
                    self.assertEqual(packed.scale_layout, "sm90_1")
                    self.assertEqual(packed.codes.shape, (200, 0))
                    self.assertEqual(packed.scales.size, 4 * 2 * (
                        2176 if format == "mxfp4" else 2304))
                    self.assertIs(packed.pack(), packed)
                    self.equal(packed.with_scales(layout), w)
                    np.testing.assert_array_equal(packed.dequantize(), w.dequantize())

    def test_products_have_the_same_bits(self):
        w, x = weights(), np.random.default_rng(2).standard_normal((5, 96)).astype(np.float16)
        for a in x, nvfp4gemm.quantize(x.astype(np.float32)):
            np.testing.assert_array_equal(nvfp4gemm.linear(a, w.pack()), nvfp4gemm.linear(a, w))

    def test_slices_of_rows_share_memory_where_units_are_whole(self):
        w = weights()
        packed = w.pack()
        for begin, end, shares in [(0, 64, True), (64, 200, True), (128, 192, True),
                                   (0, 200, True), (10, 74, False), (64, 100, False)]:
            with self.subTest(begin=begin, end=end):
                part = packed.slice_rows(begin, end)
                self.assertEqual(part.scale_layout, "sm90_1")
                self.assertEqual(np.shares_memory(part.scales, packed.scales), shares)
                np.testing.assert_array_equal(part.dequantize(),
                                              w.slice_rows(begin, end).dequantize())
        np.testing.assert_array_equal(packed.slice_k(32, 80).dequantize(),
                                      w.slice_k(32, 80).dequantize())

    def test_what_packed_weights_are_not_for_is_refused_by_name(self):
        w = weights()
        with self.assertRaisesRegex(ValueError, "a is packed, sm90_1, which b alone may be"):
            nvfp4gemm.mm(w.pack(), w)
        with self.assertRaisesRegex(ValueError, "scale_layout is 'sm80_9'; there are"):
            w.pack("sm80_9")
        with self.assertRaisesRegex(ValueError, "scale_layout is 'sm90_1'; there are '128x4'"):
            nvfp4gemm.stack([w.pack(), w.pack()])
        with self.assertRaisesRegex(ValueError, "scale_layout is 'sm90_1'; there are '128x4'"):
            nvfp4gemm.quantize(np.ones((4, 32), np.float32), scale_layout="sm90_1")
        with self.assertRaisesRegex(ValueError, "scales are"):
            packed = w.pack()
            Packed(packed.codes, packed.scales[:-2304], 200, 96, 1.0, "sm90_1")


@unittest.skipIf(torch is None, "no torch")
class OfTorch(unittest.TestCase):
    def layer(self, **options):
        torch.manual_seed(3)
        return nn.Linear.from_float(torch.nn.Linear(96, 200, dtype=torch.bfloat16), **options)

    def test_a_packed_layer_multiplies_saves_and_loads_as_without_packing(self):
        layer, x = self.layer(), torch.randn(5, 96, dtype=torch.bfloat16)
        y, state = layer(x), layer.state_dict()
        packed = copy.deepcopy(layer).pack()
        self.assertTrue(packed.is_packed)
        self.assertTrue(torch.equal(packed(x), y))
        self.assertEqual(list(packed.state_dict()), list(state))
        for name, tensor in packed.state_dict().items():
            self.assertTrue(torch.equal(tensor, state[name]), name)
        other = self.layer()
        other.codes.data.zero_()
        other.pack().load_state_dict(state)
        self.assertTrue(other.is_packed)
        self.assertTrue(torch.equal(other(x), y))
        self.assertFalse(packed.unpack().is_packed)
        self.assertTrue(torch.equal(packed(x), y))

    def test_gradients_pass_a_packed_layer(self):
        layer, x = self.layer(), torch.randn(5, 96, dtype=torch.bfloat16, requires_grad=True)
        layer(x).sum().backward()
        want = x.grad
        x.grad = None
        layer.pack()(x).sum().backward()
        self.assertTrue(torch.equal(x.grad, want))

    def test_torch_compile_takes_a_packed_layer(self):
        layer, x = self.layer().pack(), torch.randn(5, 96, dtype=torch.bfloat16)
        compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
        self.assertTrue(torch.equal(compiled(x), layer(x)))

    def test_a_layer_that_quantizes_its_input_is_not_packed(self):
        with self.assertRaisesRegex(ValueError, "has quantize_input set"):
            self.layer(quantize_input=True).pack()

    def test_load_linear_packs_layer_by_layer(self):
        import tempfile
        from safetensors.torch import save_file
        torch.manual_seed(4)
        model = torch.nn.Sequential(torch.nn.Linear(96, 128), torch.nn.Linear(128, 64))
        plain = copy.deepcopy(model)
        nn.replace_linear(plain)
        files = {}
        for name, layer in plain.named_children():
            w = layer.packed().with_scales("linear")
            files[name + ".weight"] = w.codes[:, :w.k // 2].contiguous()
            files[name + ".weight_scale"] = w.scales.reshape(w.rows, -1).view(torch.float8_e4m3fn)
            files[name + ".weight_scale_2"] = torch.as_tensor(w.tensor_scale).reshape(())
            files[name + ".bias"] = layer.bias.detach()
        x = torch.randn(3, 96, dtype=torch.float16)
        with tempfile.TemporaryDirectory() as folder:
            save_file({name: x.clone() for name, x in files.items()}, folder + "/m.safetensors")
            loaded = [copy.deepcopy(model) for _ in range(2)]
            nn.load_linear(loaded[0], folder + "/m.safetensors", "cpu")
            nn.load_linear(loaded[1], folder + "/m.safetensors", "cpu", pack=True)
        self.assertTrue(all(layer.is_packed for layer in loaded[1].children()))
        self.assertTrue(torch.equal(loaded[0].half()(x), loaded[1].half()(x)))

    @unittest.skipUnless(torch is not None and torch.cuda.is_available(), "no GPU")
    def test_a_gpu_of_9_0_multiplies_packed_weights(self):
        if torch.cuda.get_device_capability() != (9, 0):
            self.skipTest("no kernel for packed weights there")
        layer, x = self.layer().cuda(), torch.randn(40, 96, dtype=torch.bfloat16, device="cuda")
        torch.testing.assert_close(copy.deepcopy(layer).pack()(x), layer(x))


if __name__ == "__main__":
    unittest.main()
