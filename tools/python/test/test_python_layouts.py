# SPDX-License-Identifier: MIT
"""nvfp4gemm.layouts: matrices written here as other programs lay them out (docs/integration.md
names repository, file and commit), element by element, and slices of a Packed; NumPy, and torch
where it is."""
import unittest

import package  # noqa: F401
import numpy as np

try:
    import ml_dtypes
except ImportError as error:
    raise unittest.SkipTest("this Python has no ml_dtypes") from error

import nvfp4gemm
from nvfp4gemm import checkpoints, layouts

E2M1 = (0, .5, 1, 1.5, 2, 3, 4, 6)


def matrix(seed, rows, k):
    """Codes, scale bytes, and code * scale in float64."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 16, (rows, k), np.uint8)
    scales = rng.integers(1, 0x7F, (rows, k // 16), np.uint8)
    factors = np.array([-v if s else v for s in (0, 1) for v in E2M1])[codes]
    values = scales.view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    return codes, scales, factors * np.repeat(values, 16, axis=1)


def in_pairs(codes):
    return codes[:, ::2] | codes[:, 1::2] << 4


def kinds(*arrays):
    """The arrays as NumPy has them, then as torch does."""
    yield arrays
    try:
        import torch
    except ImportError:
        return
    yield tuple(torch.from_numpy(x) for x in arrays)


class Layouts(unittest.TestCase):
    def same(self, packed, values, scale):
        self.assertEqual((packed.shape, packed.scale_layout), (values.shape, "128x4"))
        expected = (values.astype(np.float32) * np.float32(scale)).astype(np.float32)
        np.testing.assert_array_equal(np.asarray(packed.dequantize()), expected)

    def ggml(self, codes, scales):
        """Source 7 of docs/integration.md."""
        rows, k = codes.shape
        blocks = np.zeros((rows, k // 64, 36), np.uint8)
        for row, column in np.ndindex(rows, k):
            block, inside = divmod(column, 64)
            sixteen, place = divmod(inside, 16)
            blocks[row, block, sixteen] = scales[row, column // 16]
            half, byte = divmod(place, 8)
            blocks[row, block, 4 + 8 * sixteen + byte] |= codes[row, column] << 4 * half
        return blocks

    def test_ggml(self):
        codes, scales, values = matrix(1, 130, 192)
        for (blocks,) in kinds(self.ggml(codes, scales)):
            self.same(layouts.from_ggml(blocks, 130, 192, 0.25), values, 0.25)
            self.same(layouts.from_ggml(blocks.reshape(-1), 130, 192), values, 1)

    def test_ggml_counts_the_scale_that_is_none_as_zero(self):
        codes, scales, values = matrix(2, 3, 64)
        scales[1, 2], values[1, 32:48] = 0x7F, 0
        blocks = self.ggml(codes, scales)
        np.testing.assert_array_equal(layouts.from_ggml(blocks, 3, 64).dequantize(), values)
        blocks[0, 0, 3] |= 0x80
        with self.assertRaisesRegex(ValueError, "bit 7"):
            layouts.from_ggml(blocks, 3, 64)

    def test_flashinfer(self):
        rows, k = 130, 208
        codes, scales, values = matrix(3, rows, k)
        down, across = -(-rows // 8), -(-k // 64)
        small = np.full(down * across * 32, 0xFF, np.uint8)  # padding is whatever
        large = np.full(256 * across * 4, 0xFF, np.uint8)
        for row, s in np.ndindex(rows, k // 16):
            small[(row // 8 * across + s // 4) * 32 + row % 8 * 4 + s % 4] = scales[row, s]
            tile = (row // 128 * across + s // 4) * 512
            large[tile + row % 32 * 16 + row % 128 // 32 * 4 + s % 4] = scales[row, s]
        for given in kinds(in_pairs(codes), small, large, scales):
            by_layout = zip(("8x4", "128x4", "linear"), given[1:])
            for layout, theirs in by_layout:
                for shaped in (theirs, theirs.reshape(-1, 4) if layout != "linear" else theirs):
                    with self.subTest(layout):
                        packed = layouts.from_flashinfer(given[0], shaped, 8.0, layout=layout)
                        self.same(packed, values, 0.125)

    def mxfp4(self, seed, rows, k):
        """Codes, scale bytes and values with a scale of 2^(byte - 127) for 32 elements."""
        codes, _, _ = matrix(seed, rows, k)
        scales = np.random.default_rng(seed).integers(100, 150, (rows, k // 32), np.uint8)
        factors = np.array([-v if s else v for s in (0, 1) for v in E2M1])[codes]
        return codes, scales, factors * np.repeat(2.0 ** (scales.astype(int) - 127), 32, axis=1)

    def test_flashinfer_mxfp4(self):
        rows, k = 21, 416
        codes, scales, values = self.mxfp4(8, rows, k)
        across = -(-k // 128)
        small = np.full(-(-rows // 8) * across * 32, 0xFF, np.uint8)  # padding is whatever
        for row, s in np.ndindex(rows, k // 32):
            small[(row // 8 * across + s // 4) * 32 + row % 8 * 4 + s % 4] = scales[row, s]
        for given in kinds(in_pairs(codes), small, scales):
            for layout, theirs in zip(("8x4", "linear"), given[1:]):
                packed = layouts.from_flashinfer(given[0], theirs, layout=layout, format="mxfp4")
                self.same(packed, values, 1)

    def test_deepgemm(self):
        for rows, k in ((21, 416), (8, 128), (1, 32)):
            codes, scales, values = self.mxfp4(9, rows, k)
            aligned, across = -(-rows // 4) * 4, -(-k // 128)
            memory = np.full(aligned * across, -1, np.int32)  # padding is whatever
            as_bytes = memory.view(np.uint8)
            for row, s in np.ndindex(rows, k // 32):
                as_bytes[4 * (s // 4 * aligned + row) + s % 4] = scales[row, s]
            for theirs, words in kinds(in_pairs(codes).view(np.int8),
                                       memory.reshape(across, aligned)):
                with self.subTest(rows=rows, k=k):
                    self.same(layouts.from_deepgemm(theirs, words.T[:rows]), values, 1)
        # The scales of row 0 and of row 1, byte by byte: 2^0, 2^1, 2^2, 2^3, then 2^4.
        words = np.array([[0x8281807F, 0x83], [0x7F7F7F7F, 0x7F]], np.uint32).view(np.int32)
        packed = layouts.from_deepgemm(np.full((2, 80), 0x22, np.uint8), words)
        np.testing.assert_array_equal(packed.dequantize()[:, ::32], [[1, 2, 4, 8, 16], [1] * 5])

    def test_transformer_engine(self):
        rows, k = 48, 80
        codes, scales, values = matrix(4, rows, k)
        padded = np.full((128, 8), 0xFF, np.uint8)
        padded[:rows, :5] = scales
        for theirs, scale in kinds(in_pairs(codes).reshape(3, 16, 40), padded):
            self.same(layouts.from_transformer_engine(theirs, scale, 1344.0), values, 0.5)
            self.same(layouts.from_transformer_engine(theirs, scale, 0.0), values, 1)
        linear = nvfp4gemm.Packed(in_pairs(codes), scales.reshape(-1), rows, k, 1.0, "linear")
        tiles = linear.with_scales("128x4").scales
        self.same(layouts.from_transformer_engine(in_pairs(codes), tiles, np.float32([2688]),
                                                  swizzled=True), values, 1)

    def test_what_does_not_fit_is_said(self):
        codes, scales, _ = matrix(5, 8, 64)
        for call, words in [
            (lambda: layouts.from_ggml(codes, 8, 80), "k = 80 is no multiple of 64"),
            (lambda: layouts.from_ggml(codes, 8, 64), "blocks are 512 bytes, expected 288"),
            (lambda: layouts.from_flashinfer(in_pairs(codes), scales[:7], 1.0, layout="8x4"),
             r"scales \(7, 4\) are no 8x4 ones of \[8, 64\]: 28 bytes, expected 32"),
            (lambda: layouts.from_flashinfer(in_pairs(codes), scales, 1.0), "are no 128x4 ones"),
            (lambda: layouts.from_transformer_engine(in_pairs(codes), scales, 1.0),
             "are no padded ones of .8, 64.: 32 bytes, expected 512"),
        ]:
            with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                call()
        words = np.zeros((8, 1), np.int32)
        for call, kind, message in [
            (lambda: layouts.from_deepgemm(in_pairs(codes), words[:7]), ValueError,
             r"scales are \(7, 1\), expected \(8, 1\)"),
            (lambda: layouts.from_deepgemm(in_pairs(codes), words.astype(np.float32)), TypeError,
             "scales are of float32, expected int32 or uint32"),
            (lambda: layouts.from_deepgemm(words, words), TypeError,
             "codes are of int32, expected int8 or uint8"),
            (lambda: layouts.from_flashinfer(in_pairs(codes), scales, 2.0, format="mxfp4"),
             ValueError, "global_scale is 2.0; mxfp4 has none"),
        ]:
            with self.subTest(message), self.assertRaisesRegex(kind, message):
                call()
        with self.assertRaisesRegex(TypeError, "blocks are of int8, expected uint8"):
            layouts.from_ggml(codes.view(np.int8), 8, 64)


class Late(unittest.TestCase):
    def test_sizes_are_looked_at_before_anything_is_copied(self):
        """A view of 2^36 bytes on a few: no memory would hold its copy."""
        packed = nvfp4gemm.quantize(np.ones((4, 64), np.float32))
        many = np.broadcast_to(np.ones(8, np.uint8), (1 << 33, 8))
        floats = np.broadcast_to(np.ones(8, np.uint8).view("int32")[:1], (1 << 34, 1))
        for call in (
                lambda: layouts.from_transformer_engine(packed.codes, many, 1.0),
                lambda: layouts.from_transformer_engine(packed.codes, many, 1.0, swizzled=True),
                lambda: layouts.from_flashinfer(packed.codes, many),
                lambda: layouts.from_flashinfer(packed.codes, many, layout="8x4"),
                lambda: layouts.from_flashinfer(packed.codes, many, layout="linear"),
                lambda: layouts.from_deepgemm(packed.codes, floats),
                lambda: layouts.from_ggml(many, 4, 64),
                lambda: layouts.from_ggml_mxfp4(many, 4, 64),
                lambda: checkpoints.weight(packed.codes, many),
                lambda: checkpoints.weight(many, packed.scales),
                lambda: nvfp4gemm.Packed(packed.codes, many, 4, 64),
                lambda: nvfp4gemm.Packed(many, packed.scales, 4, 64)):
            with self.assertRaisesRegex((TypeError, ValueError), "expected|no .* ones of"):
                call()


class Slices(unittest.TestCase):
    def test_hold_the_values_of_the_whole(self):
        codes, scales, _ = matrix(6, 300, 208)
        for given in kinds(np.pad(in_pairs(codes), ((0, 0), (0, 8))), scales.reshape(-1)):
            linear = nvfp4gemm.Packed(*given, 300, 208, 0.5, "linear")
            for packed in (linear, linear.with_scales("128x4")):
                whole = np.asarray(packed.dequantize())
                for begin, end in ((0, 128), (128, 300), (128, 200), (37, 165), (192, 300), (5, 5)):
                    part = packed.slice_rows(begin, end)
                    np.testing.assert_array_equal(np.asarray(part.dequantize()), whole[begin:end])
                    self.assertEqual(part.scale_layout, packed.scale_layout)
                for begin, end in ((0, 64), (64, 208), (64, 112), (32, 96), (48, 208), (208, 208)):
                    part = packed.slice_k(begin, end)
                    np.testing.assert_array_equal(np.asarray(part.dequantize()),
                                                  whole[:, begin:end])

    def test_multiply(self):
        rng = np.random.default_rng(7)
        a, b = (nvfp4gemm.quantize(rng.standard_normal((rows, 192), np.float32))
                for rows in (5, 260))
        whole = nvfp4gemm.mm(a, b, np.float32)
        for begin, end in ((128, 260), (17, 33)):
            np.testing.assert_array_equal(nvfp4gemm.mm(a, b.slice_rows(begin, end), np.float32),
                                          whole[:, begin:end])
        for cut in (64, 48):
            parts = [nvfp4gemm.mm(a.slice_k(*p), b.slice_k(*p), np.float32)
                     for p in ((0, cut), (cut, 192))]
            np.testing.assert_allclose(parts[0] + parts[1], whole, atol=1e-4)

    def test_share_where_they_can(self):
        packed = nvfp4gemm.quantize(np.ones((256, 128), np.float32))
        rows = packed.slice_rows(128, 256)
        self.assertTrue(np.shares_memory(rows.scales, packed.scales))
        self.assertTrue(np.shares_memory(rows.codes, packed.codes))
        self.assertTrue(np.shares_memory(packed.slice_k(64, 128).codes, packed.codes))

    def test_outside_is_refused(self):
        packed = nvfp4gemm.quantize(np.ones((8, 64), np.float32))
        for call, words in ((lambda: packed.slice_rows(4, 9), "rows 4 to 9 are none of 0 to 8"),
                            (lambda: packed.slice_rows(4, 3), "rows 4 to 3"),
                            (lambda: packed.slice_k(8, 64), "k 8 to 64 are no multiples of 16")):
            with self.assertRaisesRegex(ValueError, words):
                call()


if __name__ == "__main__":
    unittest.main()
