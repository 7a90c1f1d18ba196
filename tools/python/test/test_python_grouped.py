# SPDX-License-Identifier: MIT
"""grouped_linear beside a loop of products of one group each, bit for bit."""
import copy
import pickle
import unittest

import package  # noqa: F401
import numpy as np

import gpus
import nvfp4gemm

N, K = 40, 64
# Groups without rows first, in the middle and last; one row; all rows in one.
ENDS = ([0, 3, 3, 4, 9, 9], [9, 9, 9, 9, 9, 9], [1, 2, 3, 4, 5, 9])
# A tensor scale for each group; none is a power of two, so the order of factors shows in the bits.
SCALES = [0.0021, 0.0013, 0.0047, 0.0029, 0.0011, 0.0033]


def floats(seed, *shape, dtype=np.float16):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32).astype(dtype)


def of_one(x, ends, matrices, **options):
    """By single products."""
    begin, parts = 0, []
    for end, weight in zip(ends, matrices):
        rows = x.slice_rows(begin, end) if isinstance(x, nvfp4gemm.Packed) else x[begin:end]
        parts.append(nvfp4gemm.mm(rows, weight, batch_invariant=True, **options))
        begin = end
    return np.concatenate(parts)


class Grouped(unittest.TestCase):
    def setUp(self):
        self.x, self.bias = floats(1, 9, K), floats(2, N)

    def matrices(self, format_="nvfp4", scales=SCALES):
        return [nvfp4gemm.quantize(floats(seed, N, K), scale if format_ == "nvfp4" else None,
                                   format=format_) for seed, scale in enumerate(scales, 3)]

    def test_rows_have_the_bits_of_their_group(self):
        for matrices in (self.matrices(), self.matrices(scales=SCALES[:1] * 6),
                         self.matrices("mxfp4")):
            weights, format_ = nvfp4gemm.stack(matrices), matrices[0].format
            packed = nvfp4gemm.quantize(self.x, scale_layout="linear", format=format_)
            tokens = [self.x, packed]
            if format_ == "nvfp4":
                tokens.append(nvfp4gemm.quantize(self.x, "rows", scale_layout="linear"))
            if format_ == "nvfp4":
                tokens.append(packed.replace(tensor_scale=np.array(0.0017, np.float32)))
            for ends in ENDS:
                for x in tokens:
                    found = nvfp4gemm.grouped_linear(
                        x, np.array(ends, np.int32), weights, self.bias, activation="silu",
                        out_dtype=np.float32, alpha=0.7, rows_hint=2)
                    np.testing.assert_array_equal(found, of_one(
                        x, ends, matrices, bias=self.bias, activation="silu", alpha=0.7,
                        out_dtype=np.float32))

    def test_each_group_adds_its_own_bias(self):
        """NaN in those of the others changes nothing."""
        matrices, ends = self.matrices(), ENDS[0]
        biases, begin, expected = floats(21, 6, N), 0, []
        for end, weight, bias in zip(ends, matrices, biases):
            if end == begin:
                bias[:] = np.nan
            expected.append(nvfp4gemm.mm(self.x[begin:end], weight, bias=bias, alpha=0.7,
                                         batch_invariant=True, out_dtype=np.float32))
            begin = end
        for given in (biases, np.repeat(biases, 2, axis=0)[::2]):  # which is copied
            found = nvfp4gemm.grouped_linear(
                self.x, np.array(ends, np.int32), nvfp4gemm.stack(matrices), given, alpha=0.7,
                out_dtype=np.float32)
            np.testing.assert_array_equal(found, np.concatenate(expected))
        for wrong in (biases[:5], biases[:, :-1], biases[None]):
            with self.assertRaisesRegex(ValueError, "bias is .*expected .40,"):
                nvfp4gemm.grouped_linear(self.x, np.array(ends, np.int32),
                                         nvfp4gemm.stack(matrices), wrong)

    def test_tensor_scales_are_kept(self):
        alike, differ = self.matrices(scales=SCALES[:1] * 6), self.matrices()
        self.assertEqual(nvfp4gemm.stack(alike).tensor_scale, alike[0].tensor_scale)
        as_arrays = [one.replace(tensor_scale=np.array(one.tensor_scale, np.float32))
                     for one in differ[:3]] + differ[3:]
        for matrices in (differ, as_arrays):
            weights = nvfp4gemm.stack(matrices)
            self.assertEqual(weights.tensor_scale.dtype, np.float32)
            np.testing.assert_array_equal(weights.tensor_scale, np.float32(SCALES))
            self.assertIn("tensor scale for each group", repr(weights))
        one = as_arrays[0].tensor_scale
        shared = nvfp4gemm.stack([m.replace(tensor_scale=one) for m in differ])
        self.assertEqual(shared.tensor_scale.shape, ())
        alone = nvfp4gemm.stack(as_arrays[:1])
        np.testing.assert_array_equal(
            nvfp4gemm.grouped_linear(self.x, np.array([9], np.int32), alone),
            nvfp4gemm.mm(self.x, as_arrays[0], batch_invariant=True))

    def test_quantized_input_and_leading_dimensions(self):
        weights, ends = nvfp4gemm.stack(self.matrices()), np.array(ENDS[0], np.int32)
        packed = nvfp4gemm.quantize(self.x, "rows", scale_layout="linear")
        expected = nvfp4gemm.grouped_linear(packed, ends, weights)
        found = nvfp4gemm.grouped_linear(self.x.reshape(3, 3, K), ends, weights,
                                         quantize_input=True)
        np.testing.assert_array_equal(found, expected.reshape(3, 3, N))

    def test_rows_of_no_group_stay(self):
        weights = nvfp4gemm.stack(self.matrices())
        for ends, written in (([1, 2, 3, 4, 5, 6], 6), ([3, 3, 3, 3, 4, 100], 9)):
            out = np.full((9, N), 7, np.float32)
            nvfp4gemm.grouped_linear(self.x, np.array(ends, np.int32), weights, out=out)
            self.assertTrue((out[written:] == 7).all() and (out[:written] != 7).any(1).all())

    def test_ends_as_others_make_them(self):
        """int64, or with a 0 before them; numbers that no int32 has are beyond the rows, too."""
        weights, ends = nvfp4gemm.stack(self.matrices()), ENDS[2]
        expected = nvfp4gemm.grouped_linear(self.x, np.array(ends, np.int32), weights)
        for given in ([*ends], [0, *ends], [*ends[:5], 2**32 + 1], [0, *ends[:5], 2**62]):
            for type_ in (np.int64, np.int32, ">i8"):
                if max(given) > 9 and type_ == np.int32:
                    continue
                found = nvfp4gemm.grouped_linear(self.x, np.array(given, type_), weights)
                np.testing.assert_array_equal(found, expected)
        with self.assertRaisesRegex(ValueError, r"ends\[1\] is -1 after 1"):
            nvfp4gemm.grouped_linear(self.x, np.array([1, -2**32, 4, 5, 6, 9]), weights)

    def test_ends_that_fall_are_refused_on_the_cpu(self):
        weights = nvfp4gemm.stack(self.matrices())
        for ends, words in (([3, 1, 4, 5, 6, 9], r"ends\[1\] is 1 after 3"),
                            ([-1, 4, 4, 5, 6, 9], r"ends\[0\] is -1"),
                            ([1, 2, 3, 4, 9, 8], r"ends\[5\] is 8 after 9")):
            out, ends = np.full((9, N), 7, np.float32), np.array(ends, np.int32)
            for call in (
                    lambda: nvfp4gemm.grouped_linear(self.x, ends, weights, out=out),
                    lambda: nvfp4gemm.grouped_gated_linear(self.x, ends, weights, weights, out=out),
                    lambda: nvfp4gemm.grouped_linear(self.x, ends, weights, out=out,
                                                     quantize_input=True)):
                with self.assertRaisesRegex(ValueError, words + ".*do not fall"):
                    call()
                self.assertTrue((out == 7).all())

    def test_copies_of_a_stack(self):
        weights, ends = nvfp4gemm.stack(self.matrices()), np.array(ENDS[0], np.int32)
        expected = nvfp4gemm.grouped_linear(self.x, ends, weights)
        for again in (copy.deepcopy(weights), pickle.loads(pickle.dumps(weights))):
            self.assertEqual((again.groups, again.rows_of_a_group, again.k), (6, N, K))
            np.testing.assert_array_equal(nvfp4gemm.grouped_linear(self.x, ends, again), expected)

    def test_what_does_not_fit_is_said(self):
        x, ends, matrices = self.x, np.array(ENDS[0], np.int32), self.matrices()
        weights = nvfp4gemm.stack(matrices)
        of_64_rows = nvfp4gemm.quantize(floats(1, 128, K), 1.0, scale_layout="linear").replace(
            tensor_scale=np.ones(2, np.float32))
        zeros = np.zeros((2, N, K // 2), np.uint8)
        for call, words in (
                (lambda: nvfp4gemm.grouped_linear(x, ends, matrices[0]), "weights is Packed"),
                (lambda: nvfp4gemm.grouped_linear(x, ends[:2], weights), "ends is .2,., expected"),
                (lambda: nvfp4gemm.grouped_linear(x, ends.astype(np.int16), weights),
                 "ends is of int16, expected int32 or int64"),
                (lambda: nvfp4gemm.grouped_linear(x, np.array([1, *ends]), weights),
                 r"ends.0. is 1; of 7 numbers the first one is 0"),
                (lambda: nvfp4gemm.grouped_linear(x[:, :32], ends, weights), "x has k = 32"),
                (lambda: nvfp4gemm.grouped_linear(of_64_rows, ends, weights),
                 "x has a tensor scale for each 64 rows"),
                (lambda: nvfp4gemm.stack([]), "matrices are none"),
                (lambda: nvfp4gemm.stack([matrices[0], matrices[1].slice_rows(0, 8)]),
                 "matrix 1 has shape"),
                (lambda: nvfp4gemm.stack([matrices[0], matrices[1].replace(
                    tensor_scale=np.ones(N, np.float32))]), "matrix 1 has several tensor scales"),
                (lambda: nvfp4gemm.Stack(zeros[0], zeros[0], 2, N, K), "codes are"),
                (lambda: nvfp4gemm.Stack(zeros, np.zeros(512, np.uint8), 2, N, K),
                 "scales are .512,., 512 bytes; expected 1024"),
                (lambda: weights.replace(tensor_scale=np.ones(2, np.float32)),
                 "tensor_scale is .2,.; expected a number or one float32, or 6 of them"),
                (lambda: weights.replace(tensor_scale=np.ones(6 * N, np.float32)),
                 "tensor_scale is .240,.; expected a number"),
                (lambda: nvfp4gemm.stack(self.matrices("mxfp4")).replace(
                    tensor_scale=np.ones(6, np.float32)), "mxfp4 has none")):
            with self.subTest(words), self.assertRaisesRegex(
                    (TypeError, ValueError, nvfp4gemm.Error), words):
                call()


class Gated(unittest.TestCase):
    """grouped_gated_linear beside a loop of gated_linear."""

    def setUp(self):
        self.x, self.biases = floats(1, 9, K), (floats(2, N), floats(12, N))
        self.pairs = self.matrices(SCALES, SCALES[::-1])
        self.gate, self.up = map(nvfp4gemm.stack, self.pairs)

    def matrices(self, *scales):
        """Those of gate and of up, with these tensor scales."""
        return [[nvfp4gemm.quantize(floats(seed, N, K), one) for seed, one in
                 enumerate(of_groups, 3 + 20 * i)] for i, of_groups in enumerate(scales)]

    def of_one(self, x, ends, pairs=None, **options):
        begin, parts = 0, []
        for end, gate, up in zip(ends, *(pairs or self.pairs)):
            rows = x.slice_rows(begin, end) if isinstance(x, nvfp4gemm.Packed) else x[begin:end]
            parts.append(nvfp4gemm.gated_linear(rows, gate, up, *self.biases, **options))
            begin = end
        return np.concatenate(parts)

    def test_rows_have_the_bits_of_their_group(self):
        packed = nvfp4gemm.quantize(self.x, "rows", scale_layout="linear")
        for options in ({}, {"limit": 1, "alpha": 1.702, "beta": 1}, {"activation": "gelu"}):
            for ends in ENDS:
                for x in (self.x, packed):
                    found = nvfp4gemm.grouped_gated_linear(
                        x, np.array(ends, np.int32), self.gate, self.up, *self.biases,
                        out_dtype=np.float32, rows_hint=2, **options)
                    np.testing.assert_array_equal(
                        found, self.of_one(x, ends, out_dtype=np.float32, **options))

    def test_out_scale_quantizes_the_result(self):
        """To the bits of quantize() of the result in float32, as the tokens of a next product."""
        ends, wide = np.array(ENDS[2], np.int32), floats(31, 9, 64)
        for format_ in ("nvfp4", "mxfp4", "e2m1_ue8m0"):
            for n in (64,) if format_ == "mxfp4" else (64, 48):
                gate, up = (nvfp4gemm.stack([
                    nvfp4gemm.quantize(floats(seed + i, n, K), format=format_)
                    for seed in range(6)]) for i in (40, 50))
                x = nvfp4gemm.quantize(wide, scale_layout="linear", format=format_)
                float_ = nvfp4gemm.grouped_gated_linear(x, ends, gate, up, out_dtype=np.float32)
                scales = [1.0] if format_ != "nvfp4" else [0.013, np.array([0.013], np.float32)]
                for scale in scales:
                    found = nvfp4gemm.grouped_gated_linear(x, ends, gate, up, out_scale=scale)
                    expected = nvfp4gemm.quantize(
                        float_, None if format_ != "nvfp4" else 0.013, scale_layout="linear",
                        format=format_)
                    self.assertEqual((found.shape, found.format, found.scale_layout),
                                     ((9, n), format_, "linear"))
                    np.testing.assert_array_equal(found.codes[:, :n // 2],
                                                  expected.codes[:, :n // 2])
                    np.testing.assert_array_equal(found.scales, expected.scales)
                    np.testing.assert_array_equal(np.asarray(found.tensor_scale).reshape(-1),
                                                  np.float32([expected.tensor_scale]))
        gate, up, x = self.gate, self.up, self.x
        ue8m0 = [nvfp4gemm.stack([nvfp4gemm.quantize(floats(3, 64, K), format="mxfp4")] * 6)] * 2
        for wrong, words in (
                (lambda: nvfp4gemm.grouped_gated_linear(x, ends, gate, up, out_scale=0.1),
                 "multiple of 16 columns, not 40"),
                (lambda: nvfp4gemm.grouped_gated_linear(x, ends, *ue8m0, out_scale=0.5),
                 "out_scale is 0.5; mxfp4 has no tensor scale"),
                (lambda: nvfp4gemm.grouped_gated_linear(x, ends, gate, up, out_scale=0.1,
                                                        out_dtype=np.float16),
                 "out_dtype is given beside out_scale"),
                (lambda: nvfp4gemm.grouped_gated_linear(x, ends, gate, up, out_scale=-1.0),
                 "out_scale is -1"),
                (lambda: nvfp4gemm.grouped_gated_linear(x, ends, gate, up, out_scale=np.ones(
                    2, np.float32)), "expected a number or one float32")):
            with self.assertRaisesRegex(ValueError, words):
                wrong()

    def test_either_matrix_may_have_a_tensor_scale_of_each_group(self):
        ends, alike = ENDS[2], [0.002] * 6
        packed = nvfp4gemm.quantize(self.x, scale_layout="linear")
        for scales in ((SCALES, alike), (alike, SCALES), (alike, [0.003] * 6)):
            pairs = self.matrices(*scales)
            for x in (self.x, packed):
                found = nvfp4gemm.grouped_gated_linear(
                    x, np.array(ends, np.int32), *map(nvfp4gemm.stack, pairs), *self.biases,
                    out_dtype=np.float32)
                np.testing.assert_array_equal(
                    found, self.of_one(x, ends, pairs, out_dtype=np.float32))

    def test_each_group_adds_its_own_biases(self):
        ends, biases, begin, expected = ENDS[2], (floats(21, 6, N), floats(22, 6, N)), 0, []
        for end, gate, up, *own in zip(ends, *self.pairs, *biases):
            expected.append(nvfp4gemm.gated_linear(self.x[begin:end], gate, up, *own,
                                                   out_dtype=np.float32))
            begin = end
        call = nvfp4gemm.grouped_gated_linear
        operands = self.x, np.array(ends, np.int32), self.gate, self.up
        np.testing.assert_array_equal(call(*operands, *biases, out_dtype=np.float32),
                                      np.concatenate(expected))
        for wrong in ((biases[0], self.biases[1]), (self.biases[0], biases[1])):
            with self.assertRaisesRegex(ValueError, "gate_bias has shape .*, up_bias has shape"):
                call(*operands, *wrong)

    def test_quantized_input_and_codes_that_lie_apart(self):
        ends = np.array(ENDS[0], np.int32)
        packed = nvfp4gemm.quantize(self.x, "rows", scale_layout="linear")
        expected = nvfp4gemm.grouped_gated_linear(packed, ends, self.gate, self.up)
        found = nvfp4gemm.grouped_gated_linear(self.x.reshape(3, 3, K), ends, self.gate, self.up,
                                               quantize_input=True)
        np.testing.assert_array_equal(found, expected.reshape(3, 3, N))
        wide = np.zeros((6, N, K // 2 + 16), np.uint8)
        wide[:, :, :K // 2] = self.up.codes.reshape(6, N, K // 2)
        apart = nvfp4gemm.Stack(wide, self.up.scales, 6, N, K, self.up.tensor_scale)
        np.testing.assert_array_equal(
            nvfp4gemm.grouped_gated_linear(packed, ends, self.gate, apart), expected)

    def test_what_does_not_fit_is_said(self):
        x, ends = self.x, np.array(ENDS[0], np.int32)
        fewer = nvfp4gemm.stack(self.pairs[1][:5])
        linear = nvfp4gemm.stack([one.with_scales("linear") for one in self.pairs[1]])
        call = nvfp4gemm.grouped_gated_linear
        for wrong, words in (
                (lambda: call(x, ends, self.gate, self.pairs[1][0]), "up is Packed"),
                (lambda: call(x, ends, self.gate, fewer), "gate has 6 groups, up has 5"),
                (lambda: call(x, ends, self.gate, linear), "gate has scale_layout 128x4, up has"),
                (lambda: call(x, ends, self.gate, self.up, self.biases[0]), "together or not at"),
                (lambda: call(x, ends, self.gate, self.up, *self.biases, activation=None),
                 "a gate has one"),
                (lambda: call(x[:, :32], ends, self.gate, self.up), "gate has k = 64")):
            with self.subTest(words), self.assertRaisesRegex((TypeError, ValueError), words):
                wrong()


class OnTorch(gpus.OnTorch):
    def matrices(self, device):
        return [nvfp4gemm.quantize(self.torch.from_numpy(floats(seed, N, K)).to(device), scale)
                for seed, scale in enumerate(SCALES, 3)]

    def test_rows_have_the_bits_of_their_group(self):
        torch = self.torch
        for device in self.devices:
            x = torch.from_numpy(floats(1, 9, K)).to(device).bfloat16()
            matrices = self.matrices(device)
            weights = nvfp4gemm.stack(matrices)
            self.assertEqual((weights.tensor_scale.device.type, weights.tensor_scale.tolist()),
                             (device, torch.tensor(SCALES).tolist()))
            for a in (x, nvfp4gemm.quantize(x, scale_layout="linear")):
                for ends in ENDS:
                    there = torch.tensor(ends, dtype=torch.int32, device=device)
                    found = nvfp4gemm.grouped_linear(a, there, weights)
                    begin = 0
                    for end, w in zip(ends, matrices):
                        rows = a[begin:end] if a is x else a.slice_rows(begin, end)
                        one = nvfp4gemm.mm(rows, w, found.dtype, batch_invariant=True)
                        if device == "cpu":
                            self.assertTrue(torch.equal(found[begin:end], one))
                        else:  # another variant may have another order along K
                            torch.testing.assert_close(found[begin:end], one, rtol=2 ** -8,
                                                       atol=2 ** -8)
                        begin = end
            with self.assertRaisesRegex(ValueError, "x requires a gradient"):
                nvfp4gemm.grouped_linear(x.clone().requires_grad_(), there, weights)
            ups = nvfp4gemm.stack(matrices[::-1])
            for a in (x, nvfp4gemm.quantize(x, scale_layout="linear")):
                found = nvfp4gemm.grouped_gated_linear(a, there, weights, ups).float()
                for begin, end, g, u in zip([0, *ENDS[-1]], ENDS[-1], matrices, matrices[::-1]):
                    rows = a[begin:end] if a is x else a.slice_rows(begin, end)
                    one = nvfp4gemm.gated_linear(rows, g, u, out_dtype=torch.float32)
                    # a unit of the last place of float16 or bfloat16
                    torch.testing.assert_close(found[begin:end], one, atol=1e-4, rtol=2 ** -7)

    def test_torch_compile_keeps_a_layer_whole(self):
        torch = self.torch
        for device in self.devices:
            x = torch.from_numpy(floats(1, 9, K)).to(device).bfloat16()
            bias = torch.from_numpy(floats(2, N)).to(device)
            each = torch.from_numpy(floats(2, 6, N)).to(device)
            weights = nvfp4gemm.stack(self.matrices(device))
            ups = nvfp4gemm.stack(self.matrices(device)[::-1])
            ends = torch.tensor(ENDS[0], dtype=torch.int32, device=device)
            a, out = nvfp4gemm.quantize(x, scale_layout="linear"), torch.zeros(9, N, device=device)
            cases = (
                lambda x, ends: nvfp4gemm.grouped_linear(x, ends, weights) * 2,
                lambda x, ends: nvfp4gemm.grouped_linear(
                    x.reshape(3, 3, K), ends, weights, bias, activation="silu", alpha=0.5,
                    out_dtype=torch.float32, rows_hint=3),
                lambda x, ends: nvfp4gemm.grouped_linear(x, ends, weights, quantize_input=True),
                lambda x, ends: nvfp4gemm.grouped_linear(a, ends, weights, out=out) + x.sum(),
                lambda x, ends: nvfp4gemm.grouped_linear(x, ends, weights, each) * 2,
                lambda x, ends: nvfp4gemm.grouped_gated_linear(x, ends, weights, ups, bias, bias,
                                                               limit=7) * 2,
                lambda x, ends: nvfp4gemm.grouped_gated_linear(x, ends, weights, ups, each, each))
            for i, layer in enumerate(cases):
                with self.subTest(device=device, case=i):
                    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
                    found, expected = compiled(x, ends), layer(x, ends)
                    self.assertEqual((found.dtype, found.shape), (expected.dtype, expected.shape))
                    self.assertTrue(torch.equal(found, expected))

    def test_a_graph_reads_the_tensor_scales_of_each_replay(self):
        """Tensor scales of matrices that lie on the device are stacked, used and captured without
        a word from the device to the host."""
        torch = self.torch
        if "cuda" not in self.devices:
            self.skipTest("a graph of a Hopper GPU")
        x = torch.from_numpy(floats(1, 9, K)).cuda().bfloat16()
        ends = torch.tensor(ENDS[2], dtype=torch.int32, device="cuda")
        on_device = [torch.tensor(scale, device="cuda") for scale in SCALES]
        matrices = [one.replace(tensor_scale=scale)
                    for one, scale in zip(self.matrices("cuda"), on_device)]
        mode = torch.cuda.get_sync_debug_mode()
        torch.cuda.set_sync_debug_mode("error")
        self.addCleanup(torch.cuda.set_sync_debug_mode, mode)
        gate, up = nvfp4gemm.stack(matrices), nvfp4gemm.stack(matrices[::-1])

        def layer():  # an alpha that is not 1 is multiplied on the device
            return (nvfp4gemm.grouped_linear(x, ends, gate, alpha=0.7),
                    nvfp4gemm.grouped_linear(nvfp4gemm.quantize(x, 0.01, scale_layout="linear"),
                                             ends, gate, out_dtype=torch.bfloat16),
                    nvfp4gemm.grouped_gated_linear(x, ends, gate, up))

        layer()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = layer()
        for factor in (1, 3, -0.5):
            gate.tensor_scale.mul_(factor)
            up.tensor_scale.mul_(2 * factor)
            torch.cuda.set_sync_debug_mode("error")
            graph.replay()
            again = layer()
            torch.cuda.set_sync_debug_mode(mode)  # a comparison waits
            for found, expected in zip(captured, again):
                self.assertTrue(torch.equal(found, expected))
                self.assertTrue(bool(found.any()))


if __name__ == "__main__":
    unittest.main()
