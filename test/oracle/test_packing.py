# SPDX-License-Identifier: MIT
"""nvfp4_pack_weights_host, and the reference with packed weights, against numpy by
docs/packing.md."""
import ctypes
import unittest
from ctypes import c_int32, c_int64, c_uint64, c_void_p

import numpy as np

import nvfp4
from nvfp4 import ml_dtypes

SM90_1, SM100_1 = 1, 2
NVFP4, MXFP4, E2M1_UE8M0 = range(3)
BLOCK = {NVFP4: 16, MXFP4: 32, E2M1_UE8M0: 16}


class PackDesc(ctypes.Structure):
    """nvfp4_pack_desc, field by field."""

    _fields_ = [
        ("struct_size", c_uint64), ("n", c_int64), ("k", c_int64), ("l", c_int64),
        ("codes", c_void_p), ("codes_ld", c_int64), ("codes_batch_stride", c_int64),
        ("scales", c_void_p), ("scales_batch_stride_bytes", c_int64),
        ("packed", c_void_p), ("packed_batch_stride_bytes", c_int64),
        ("first_row", c_int64), ("rows", c_int64),
        ("packing", c_int32), ("format", c_int32), ("scale_layout", c_int32),
        ("reserved", c_int32 * 1),
    ]


def padded(array, rows, columns):
    return np.pad(array, ((0, rows - array.shape[0]), (0, columns - array.shape[1])))


def words_of(codes):
    """uint32 words [rows / 64, k / 64, slab, lane, step] of [rows, k] codes, multiples of 64."""
    rows, k = codes.shape
    # row = 64 block + 16 slab + 8 high + g; column = 64 unit + 16 step + 8 second + 2 c + half
    parts = codes.astype(np.uint32).reshape(rows // 64, 4, 2, 8, k // 64, 4, 2, 4, 2)
    block, slab, high, g, unit, step, second, c, half = range(9)
    parts = parts.transpose(block, unit, slab, g, c, step, second, high, half)
    pair = np.arange(4).reshape(2, 2, 1)  # second, high: j = high + 2 second
    base = 16 * np.arange(2)
    words = ((parts & 7) << (3 * pair + base).astype(np.uint32)
             | (parts >> 3) << (12 + (pair ^ 1) + base).astype(np.uint32))
    words = np.bitwise_or.reduce(words.reshape(*words.shape[:6], 8), axis=-1)
    return words.reshape(rows // 64, k // 64, 4, 32, 4)


def scale_bytes_of(scales, blocks, ue4m3):
    """[rows / 64, k / 64, bytes of the unit] of linear scales, `blocks` of a row to a unit."""
    if ue4m3:
        values = scales.view(ml_dtypes.float8_e4m3fn).astype(np.float32) * 128
        halves = values.astype(np.float16).view(np.uint16)
        scales = np.where(np.isnan(values), 0xFF, halves >> 7).astype(np.uint8)
    rows, columns = scales.shape
    # row = 64 block + 16 slab + 8 high + g; column = blocks * unit + 2 word + odd
    parts = scales.reshape(rows // 64, 4, 2, 8, columns // blocks, blocks // 2, 2)
    block, slab, high, g, unit, word, odd = range(7)
    return parts.transpose(block, unit, slab, g, word, high, odd).reshape(
        rows // 64, columns // blocks, -1)


def sm100_by_numpy(codes, scales, fmt):
    """The same in the order SM100_1: 128 rows after 128, k-block after k-block of 256 elements, and
    of each the codes before the tiles of scales."""
    unit = 4 * BLOCK[fmt]
    rows, k = ((size + to - 1) // to * to for size, to in zip(codes.shape, (128, unit)))
    codes, scales = padded(codes, rows, k), padded(scales, rows, k // BLOCK[fmt])
    pairs = codes[:, 0::2] | codes[:, 1::2] << 4
    row, parts = np.arange(128)[:, None], []
    for first in range(0, rows, 128):
        for begin in range(0, k, 256):
            end = min(begin + 256, k)
            of_rows = pairs[first:first + 128, begin // 2:end // 2]
            chunks = of_rows.reshape(128, -1, 16)
            if end - begin == 256:
                chunks = chunks[row, np.arange(8) ^ row % 8]
            else:
                chunks = chunks.transpose(1, 0, 2)
            tiles = scales[first:first + 128, begin // BLOCK[fmt]:end // BLOCK[fmt]]
            # [band, row of it, tile, scale] to [tile, row, band, scale]
            tiles = tiles.reshape(4, 32, -1, 4).transpose(2, 1, 0, 3)
            parts += [chunks.reshape(-1), tiles.reshape(-1)]
    return np.concatenate(parts)


def sm90_by_numpy(codes, scales, fmt):
    """The packed bytes of [n, k] codes, one to a byte, and linear scales, in the order SM90_1."""
    rows, k = ((size + 63) // 64 * 64 for size in codes.shape)
    words = words_of(padded(codes, rows, k))
    units = words.astype("<u4").view(np.uint8).reshape(rows // 64, k // 64, 2048)
    blocks = 64 // BLOCK[fmt]
    of_scales = scale_bytes_of(padded(scales, rows, k // 64 * blocks), blocks, fmt == NVFP4)
    return np.concatenate([units, of_scales], axis=-1).reshape(-1)


BY_NUMPY = {SM90_1: sm90_by_numpy, SM100_1: sm100_by_numpy}


class Packing(unittest.TestCase):
    def setUp(self):
        self.library = nvfp4.load()
        for name in "nvfp4_pack_weights_host", "nvfp4_unpack_weights_host":
            getattr(self.library, name).argtypes = [ctypes.POINTER(PackDesc)]

    def call(self, name, packing, codes, scales, packed, n, k, fmt):
        desc = PackDesc(struct_size=ctypes.sizeof(PackDesc), n=n, k=k, l=1,
                        codes=codes.ctypes.data, codes_ld=codes.shape[1] * 2,
                        scales=scales.ctypes.data, packed=packed.ctypes.data, packing=packing,
                        format=fmt, scale_layout=nvfp4.LAYOUT_LINEAR)
        status = getattr(self.library, name)(ctypes.byref(desc))
        self.assertEqual(status, 0, self.library.nvfp4_last_error())

    def weights(self, rng, n, k, fmt):
        """Codes one to a byte, as a checkpoint has them with rows of whole 16 bytes, and scales."""
        codes = rng.integers(0, 16, (n, k), dtype=np.uint8)
        stored = padded(codes[:, 0::2] | codes[:, 1::2] << 4, n, (k + 31) // 32 * 16)
        scales = rng.integers(0, 128 if fmt == NVFP4 else 256, (n, k // BLOCK[fmt]), dtype=np.uint8)
        return codes, np.ascontiguousarray(stored), scales

    def test_packed_bytes_are_those_of_numpy(self):
        rng = np.random.default_rng(1)
        for n, k in [(64, 64), (1, 32), (130, 96), (200, 320), (63, 1056), (129, 448), (128, 512)]:
            for fmt in BLOCK:
                codes, stored, scales = self.weights(rng, n, k, fmt)
                for packing, by_numpy in BY_NUMPY.items():
                    with self.subTest(n=n, k=k, format=fmt, packing=packing):
                        want = by_numpy(codes, scales, fmt)
                        packed = np.full_like(want, 0xAA)
                        self.call("nvfp4_pack_weights_host", packing, stored, scales, packed, n, k,
                                  fmt)
                        np.testing.assert_array_equal(packed, want)
                        back, back_scales = np.zeros_like(stored), np.zeros_like(scales)
                        self.call("nvfp4_unpack_weights_host", packing, back, back_scales, want, n,
                                  k, fmt)
                        np.testing.assert_array_equal(back, stored)
                        np.testing.assert_array_equal(back_scales, scales)

    def test_the_reference_multiplies_what_numpy_packed(self):
        rng = np.random.default_rng(2)
        m, n, k = 5, 70, 96
        a, sfa = nvfp4.random_operand(rng, m, k, [0x38, 0x40])
        codes, stored, _ = self.weights(rng, n, k, NVFP4)
        scales = rng.choice(np.array([0x00, 0x38, 0x44], dtype=np.uint8), (n, k // 16))
        want = nvfp4.decode(a, sfa) @ nvfp4.decode(stored[:, :k // 2], scales).T
        for packing, by_numpy in BY_NUMPY.items():
            packed, d = by_numpy(codes, scales, NVFP4), np.zeros((m, n), dtype=np.float16)
            g = nvfp4.make_desc(m, n, k, 1.0, nvfp4.LAYOUT_LINEAR)
            g.a, g.a_scales, g.b, g.d = (x.ctypes.data for x in (a, sfa, packed, d))
            g.b_packing, g.b_ld = packing, 0
            self.assertEqual(self.library.nvfp4_gemm_reference(ctypes.byref(g)), 0,
                             self.library.nvfp4_last_error())
            np.testing.assert_array_equal(d, (want + 0.0).astype(np.float16))


if __name__ == "__main__":
    unittest.main()
