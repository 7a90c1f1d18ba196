# SPDX-License-Identifier: MIT
"""Packed.pack() and nn.Linear.pack() on the CPU, where the library's reference multiplies, and on a
GPU of 9.0 or 10.x if there is one: the bits of the same weights without packing."""
import copy
import pickle
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
                    other = packed.pack("sm100_1")
                    self.assertEqual(other.scale_layout, "sm100_1")
                    self.assertEqual(other.scales.size, 2 * (
                        8704 if format == "mxfp4" else 2 * 4608))
                    self.equal(other.with_scales(layout), w)
                    self.equal(other.pack(), packed)

    def test_products_have_the_same_bits(self):
        w, x = weights(), np.random.default_rng(2).standard_normal((5, 96)).astype(np.float16)
        for packing in "sm90_1", "sm100_1":
            for a in x, nvfp4gemm.quantize(x.astype(np.float32)):
                np.testing.assert_array_equal(nvfp4gemm.linear(a, w.pack(packing)),
                                              nvfp4gemm.linear(a, w))

    def test_slices_of_rows_share_memory_where_units_are_whole(self):
        w = weights()
        for packing, begin, end, shares in [
                ("sm90_1", 0, 64, True), ("sm90_1", 64, 200, True), ("sm90_1", 128, 192, True),
                ("sm90_1", 0, 200, True), ("sm90_1", 10, 74, False), ("sm90_1", 64, 100, False),
                ("sm100_1", 0, 128, True), ("sm100_1", 128, 200, True), ("sm100_1", 64, 200, False),
                ("sm100_1", 128, 192, False)]:
            packed = w.pack(packing)
            with self.subTest(packing=packing, begin=begin, end=end):
                part = packed.slice_rows(begin, end)
                self.assertEqual(part.scale_layout, packing)
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
        with self.assertRaisesRegex(ValueError, "packing is 'linear'; there are 'sm90_1', 'sm10"):
            nvfp4gemm.stack([w]).pack("linear")
        with self.assertRaisesRegex(ValueError, "x is packed, sm90_1, which weights alone may be"):
            nvfp4gemm.grouped_linear(w.pack(), np.array([200], np.int32), nvfp4gemm.stack([w]))
        with self.assertRaisesRegex(ValueError, "matrix 1 has scale_layout 128x4, matrix 0 has"):
            nvfp4gemm.stack([w.pack(), w])
        with self.assertRaisesRegex(ValueError, "scale_layout is 'sm90_1'; there are '128x4'"):
            nvfp4gemm.quantize(np.ones((4, 32), np.float32), scale_layout="sm90_1")
        with self.assertRaisesRegex(ValueError, "scales are"):
            packed = w.pack()
            Packed(packed.codes, packed.scales[:-2304], 200, 96, 1.0, "sm90_1")

    def test_groups_have_the_bits_of_weights_that_are_not_packed(self):
        x = np.random.default_rng(5).standard_normal((9, 96)).astype(np.float16)
        ends = np.array([2, 2, 9], np.int32)
        for format in "nvfp4", "mxfp4", "e2m1_ue8m0":
            with self.subTest(format=format):
                each = [weights(72, seed=seed, format=format) for seed in range(6)]
                gate, up = nvfp4gemm.stack(each[:3]), nvfp4gemm.stack(each[3:])
                packed = gate.pack(), nvfp4gemm.stack([one.pack() for one in each[3:]])
                self.assertEqual(packed[0].codes.shape, (3 * 72, 0))
                for other in gate.pack("sm100_1"), packed[0].pack("sm100_1"):
                    np.testing.assert_array_equal(nvfp4gemm.grouped_linear(x, ends, other),
                                                  nvfp4gemm.grouped_linear(x, ends, gate))
                np.testing.assert_array_equal(packed[1].scales, up.pack().scales)
                self.assertIs(gate.unpack(), gate)
                for part in "codes", "scales":
                    np.testing.assert_array_equal(getattr(packed[0].unpack(), part),
                                                  getattr(gate, part))
                np.testing.assert_array_equal(nvfp4gemm.grouped_linear(x, ends, packed[0]),
                                              nvfp4gemm.grouped_linear(x, ends, gate))
                np.testing.assert_array_equal(
                    nvfp4gemm.grouped_gated_linear(x, ends, *packed, activation="silu"),
                    nvfp4gemm.grouped_gated_linear(x, ends, gate, up, activation="silu"))
        with self.assertRaisesRegex(ValueError, "gate has scale_layout sm90_1, up has"):
            nvfp4gemm.grouped_gated_linear(x, ends, packed[0], up)


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

    def experts(self, **options):
        generator = torch.Generator().manual_seed(8)
        return nn.Experts(*([nvfp4gemm.quantize(torch.randn(shape, generator=generator))
                             for _ in range(3)]
                            for shape in ((80, 96), (80, 96), (96, 80))), **options)

    def test_packed_experts_multiply_save_and_load_as_without_packing(self):
        torch.manual_seed(7)
        one, x = self.experts(), torch.randn(5, 96).bfloat16()
        index, share = torch.tensor([[0, 1], [2, 0], [1, 2], [2, 1], [0, 2]]), torch.rand(5, 2)
        y, state = one(x, index, share), one.state_dict()
        packed = copy.deepcopy(one).pack()
        self.assertTrue(packed.is_packed and not one.is_packed)
        for again in packed, copy.deepcopy(packed), pickle.loads(pickle.dumps(packed)):
            self.assertEqual(again.gate_codes.shape, (3, 80, 0))
            self.assertTrue(torch.equal(again(x, index, share), y))
        self.assertEqual(list(packed.state_dict()), list(state))
        for name, tensor in packed.state_dict().items():
            self.assertTrue(torch.equal(tensor, state[name]), name)
        other = self.experts()
        other.gate_codes.zero_()
        other.pack().load_state_dict(state)
        self.assertTrue(other.is_packed)
        self.assertTrue(torch.equal(other(x, index, share), y))
        self.assertFalse(packed.unpack().is_packed)
        self.assertTrue(torch.equal(packed(x, index, share), y))
        compiled = torch.compile(other, fullgraph=True, backend="aot_eager")
        self.assertTrue(torch.equal(compiled(x, index, share), y))
        with self.assertRaisesRegex(ValueError, "the experts have quantize_input not set, .* as "
                                                "sm100_1 multiply quantized x"):
            one.pack("sm100_1")

    def test_what_quantizes_its_input_takes_the_packing_of_10_x(self):
        torch.manual_seed(9)
        x, index = torch.randn(5, 96).bfloat16(), torch.tensor([[0], [2], [1], [2], [0]])
        experts, layer = self.experts(quantize_input=True), self.layer(quantize_input=True)
        for one, given in (experts, (x, index, torch.rand(5, 1))), (layer, (x,)):
            y = one(*given)
            with self.assertRaisesRegex(ValueError, "quantize_input set, and weights packed as "
                                                    "sm90_1 multiply x of bfloat16 or float16"):
                one.pack("sm90_1")
            self.assertFalse(one.is_packed)
            one.pack()
            self.assertEqual(one._layout, "sm100_1")
            self.assertTrue(torch.equal(one(*given), y))
            again = copy.deepcopy(one).unpack()
            again.load_state_dict(one.state_dict())
            self.assertTrue(torch.equal(again(*given), y))

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

    def test_the_gpu_chooses_the_packing_and_unpacks_what_it_does_not_read(self):
        from unittest import mock
        from nvfp4gemm import _packings
        on_gpu = mock.Mock(is_cuda=True)
        for capability, name in ((9, 0), "sm90_1"), ((10, 0), "sm100_1"), ((10, 3), "sm100_1"):
            with mock.patch.object(torch.cuda, "get_device_capability", return_value=capability):
                self.assertEqual(_packings.chosen(on_gpu, None), name)
                for packing in "sm90_1", "sm100_1":
                    self.assertEqual(_packings.chosen(on_gpu, packing), packing)
                    self.assertEqual(_packings.reads(on_gpu, packing), packing == name)
        with mock.patch.object(torch.cuda, "get_device_capability", return_value=(8, 0)):
            with self.assertRaisesRegex(ValueError, "capability 8.0 has no kernels for packed"):
                _packings.chosen(on_gpu, None)

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
    def test_a_gpu_multiplies_packed_weights(self):
        capability = torch.cuda.get_device_capability()
        if capability not in ((9, 0), (10, 0), (10, 3)):
            self.skipTest("no kernel for packed weights there")
        quantizes = {"quantize_input": capability[0] == 10}
        layer = self.layer(**quantizes).cuda()
        x = torch.randn(40, 96, dtype=torch.bfloat16, device="cuda")
        torch.testing.assert_close(copy.deepcopy(layer).pack()(x), layer(x))
        experts, share = self.experts(**quantizes).cuda(), torch.rand(40, 2, device="cuda")
        index = torch.arange(80, device="cuda").reshape(40, 2) % 3
        torch.testing.assert_close(copy.deepcopy(experts).pack()(x, index, share),
                                   experts(x, index, share), rtol=2 ** -7, atol=1e-2)


if __name__ == "__main__":
    unittest.main()
