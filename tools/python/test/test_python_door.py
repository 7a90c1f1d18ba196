# SPDX-License-Identifier: MIT
"""The one door: every argument times every oddity of door_table.py, on NumPy's arrays and on a stub
of torch's tensors; those of its GPU are computed by the emulator, which watches every access."""
import copy
import faulthandler
import os
import pickle
import re
import subprocess
import sys
import unittest

import package
import numpy as np

import nvfp4gemm
from nvfp4gemm import checkpoints, layouts

import door_table
import oddities
import pages

faulthandler.enable()  # a read beyond a wall then says which line of which test
FREE_OF_THE_TABLE = door_table.FREE + ("an array of NumPy", "a list", "a scalar of NumPy")
REFUSED = (TypeError, ValueError, nvfp4gemm.Error)


class OnNumpy:
    """NumPy's arrays as they are."""
    columns = door_table.columns()

    @staticmethod
    def of(values):
        return oddities.dense(values).array

    @staticmethod
    def values(array):
        return np.asarray(array)


def bits(kind, results):
    return [np.asarray(kind.values(x)).tobytes() for x in results]


def on_a_fresh_copy(kind, row, array):
    """What the call gives for an array of the same values, type and shape, made without a call of
    the package. Most columns show the same values in other ways: those are computed once."""
    if isinstance(array, float):
        return bits(kind, row.call(array))
    values = np.asarray(kind.values(array))
    values = values.astype(values.dtype.newbyteorder("="))
    of = OnNumpy.of if isinstance(array, np.ndarray) else kind.of
    key = of, values.dtype, values.shape, values.tobytes()
    if key not in row.known:
        row.known[key] = bits(kind, row.call(of(values)))
    return row.known[key]


def at_once(call, array):
    return call(array)


def cell(kind, row, column, through=at_once, refused=REFUSED, nameless=()):
    """"equal" or "raises", what a cell of the table does where `through` makes the call; a sentence
    where it does neither. Exceptions of `refused` name the argument, but for those of
    `nameless`."""
    odd = column.make(row.values)
    if odd is None:
        return None
    before = odd.bytes()
    try:
        results = bits(kind, through(row.call, odd.array))
    except refused as error:
        if not isinstance(error, nameless) and not re.search(rf"\b({row.name})\b", str(error)):
            return f"an exception that does not name {row.name}: {error!r}"
        return "raises" if same(odd, before) else "an exception, and bytes of the caller changed"
    if row.way == door_table.WRITTEN:
        if before is not None and not same(odd, before, ~odd.mine()):
            return "bytes around the elements changed"
        expected = on_a_fresh_copy(kind, row, kind.of(np.zeros_like(row.values)))
    else:
        if not same(odd, before):
            return "an argument that is only read changed"
        expected = on_a_fresh_copy(kind, row, odd.array)
    return "equal" if results == expected else "other bits than on a fresh copy"


def same(odd, before, where=slice(None)):
    return before is None or (odd.bytes()[where] == before[where]).all()


class Table(unittest.TestCase):
    kind = OnNumpy

    def arguments(self):
        return door_table.arguments(self.kind)

    def test_every_argument_times_every_oddity(self):
        cells = 0
        for row in self.arguments():
            for name, column in self.kind.columns.items():
                with self.subTest(f"{row}: {name}"):
                    found = cell(self.kind, row, column)
                    if found is not None:
                        self.assertEqual(found, row.verdict(name, column))
                        cells += 1
        self.assertGreater(cells, 20 * len(self.kind.columns))


class OnAStub(unittest.TestCase):
    def run_table(self, device):
        emulator = os.path.join(package.BUILD, "emulator")
        if not os.path.exists(emulator):
            self.skipTest("no emulator was built")
        done = subprocess.run(
            [sys.executable, os.path.join(package.HERE, "door_on_stub.py"), device],
            env={**os.environ, "LD_LIBRARY_PATH": emulator, "EMU_DEVICE": "H200",
                 "EMU_FORMAL": "stop"},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_table_on_the_cpu(self):
        self.run_table("cpu")

    def test_table_on_the_emulated_gpu(self):
        self.run_table("cuda")


class Examples(unittest.TestCase):
    """Calls that once read or wrote beyond an array, or used other elements than it has."""

    def setUp(self):
        self.x = oddities.dense(door_table.floats(1, 8, 128)).array
        self.weight = nvfp4gemm.quantize(door_table.floats(2, 256, 128))
        self.bias = door_table.floats(3, 512)

    def same(self, call, array):
        copy = np.array(array, array.dtype.newbyteorder("="), order="C")
        np.testing.assert_array_equal(call(array), call(copy))

    def test_one_row_seen_eight_times(self):
        row = oddities.dense(door_table.floats(4, 1, 128)).array
        self.same(lambda x: nvfp4gemm.linear(x, self.weight), np.broadcast_to(row, (8, 128)))
        row = oddities.dense(door_table.floats(4, 1, 256)).array
        self.same(lambda c: nvfp4gemm.mm(self.x, self.weight, c=c), np.broadcast_to(row, (8, 256)))

    def test_a_bias_in_steps(self):
        self.same(lambda bias: nvfp4gemm.linear(self.x, self.weight, bias), self.bias[::2])

    def test_rows_backwards_columns_first_foreign_bytes(self):
        for x in (self.x[::-1], np.asfortranarray(self.x), self.x.astype(">f2")):
            self.same(lambda x: nvfp4gemm.linear(x, self.weight), x)

    def test_results_that_cannot_be_written(self):
        memory = np.full(8 * 256, 7, np.float16)
        row = np.lib.stride_tricks.as_strided(memory, (8, 256), (0, 2))
        locked = memory.reshape(8, 256)[:]
        locked.flags.writeable = False
        for out in (row, locked):
            with self.assertRaisesRegex(ValueError, r"\bout\b"):
                nvfp4gemm.linear(self.x, self.weight, out=out)
        self.assertTrue((memory == 7).all())

    def test_more_rows_than_there_are(self):
        codes, scales = np.zeros((4, 64), np.uint8), np.zeros(1 << 25, np.uint8)
        with self.assertRaisesRegex(ValueError, r"codes are \(4, 64\); expected \(4194304, 64\)"):
            nvfp4gemm.Packed(codes, scales, 1 << 22, 128)

    def test_codes_that_shrink_afterwards(self):
        codes = np.zeros((256, 64), np.uint8)
        weight = nvfp4gemm.Packed(codes, np.zeros(256 * 8, np.uint8), 256, 128)
        weight.dequantize()
        del codes
        weight.codes.resize((1, 64), refcheck=False)
        for call in (weight.dequantize, lambda: nvfp4gemm.linear(self.x, weight)):
            with self.assertRaisesRegex(ValueError, "codes are"):
                call()

    def test_copies_of_a_packed(self):
        for copied in (copy.deepcopy(self.weight), pickle.loads(pickle.dumps(self.weight))):
            self.assertIsNot(copied.codes, self.weight.codes)
            np.testing.assert_array_equal(copied.dequantize(), self.weight.dequantize())
        self.weight.input_scale = 0.5  # as checkpoints have it beside a weight
        self.assertEqual(copy.deepcopy(self.weight).input_scale, 0.5)

    def test_a_result_over_what_is_read(self):
        memory = np.zeros(8 * 256 + 100, np.float16)
        out, x = memory[:8 * 256].reshape(8, 256), memory[100:100 + 8 * 128].reshape(8, 128)
        with self.assertRaisesRegex(ValueError, "out shares memory with what is read"):
            nvfp4gemm.linear(x, self.weight, out=out)
        out[...] = 1
        expected = nvfp4gemm.mm(self.x, self.weight, c=np.ones_like(out))
        np.testing.assert_array_equal(nvfp4gemm.mm(self.x, self.weight, c=out, out=out), expected)

    def test_scalars(self):
        for name in ("alpha", "beta"):
            with self.assertRaisesRegex(TypeError, rf"{name} is ndarray; expected a number"):
                nvfp4gemm.mm(self.x, self.weight, **{name: np.ones(1, np.float32)})
        self.same(lambda x: nvfp4gemm.mm(x, self.weight, alpha=np.float32(2)), self.x)
        for rows, kind in ((4.0, TypeError), (-1, ValueError), (1 << 40, ValueError)):
            with self.assertRaisesRegex(kind, "rows is"):
                nvfp4gemm.Packed(self.weight.codes, self.weight.scales, rows, 128)
        for scale in (float("nan"), float("inf"), 1e300, -1.0, 1e-50, np.float32("nan")):
            with self.assertRaisesRegex(ValueError, "tensor_scale is .*; expected a finite"):
                nvfp4gemm.Packed(self.weight.codes, self.weight.scales, 256, 128, scale)
            with self.assertRaisesRegex(ValueError, "tensor_scale is .*; expected a finite"):
                nvfp4gemm.quantize(self.x, scale)
            with self.assertRaisesRegex(ValueError, "tensor_scale is .*; expected a finite"):
                nvfp4gemm.Stack(self.weight.codes.reshape(2, 128, 64), self.weight.scales, 2, 128,
                                128, scale)
        with self.assertRaisesRegex(ValueError, "k = 100 is not a multiple of 16"):
            nvfp4gemm.Packed(self.weight.codes, self.weight.scales, 256, 100)

    def test_switches(self):
        """What is neither True nor False says nothing, however it counts in an if."""
        stack = nvfp4gemm.stack([self.weight])
        ends, codes = np.array([8], np.int32), self.weight.codes
        scales = self.weight.with_scales("linear").scales
        for wrong in ("no", None, 2, 1.0, np.ones(2, bool)):
            for name, call in (
                    ("batch_invariant", lambda: nvfp4gemm.mm(
                        self.x, self.weight, batch_invariant=wrong)),
                    ("batch_invariant", lambda: nvfp4gemm.linear(
                        self.x, self.weight, batch_invariant=wrong)),
                    ("batch_invariant", lambda: nvfp4gemm.gated_linear(
                        self.x, self.weight, self.weight, batch_invariant=wrong)),
                    ("quantize_input", lambda: nvfp4gemm.linear(
                        self.x, self.weight, quantize_input=wrong)),
                    ("quantize_input", lambda: nvfp4gemm.gated_linear(
                        self.x, self.weight, self.weight, quantize_input=wrong)),
                    ("quantize_input", lambda: nvfp4gemm.grouped_linear(
                        self.x, ends, stack, quantize_input=wrong)),
                    ("quantize_input", lambda: nvfp4gemm.grouped_gated_linear(
                        self.x, ends, stack, stack, quantize_input=wrong)),
                    ("divides", lambda: checkpoints.weight(codes, scales, divides=wrong)),
                    ("swizzled", lambda: layouts.from_transformer_engine(
                        codes, self.weight.scales, 1.0, swizzled=wrong))):
                with self.subTest(name=name, wrong=wrong), self.assertRaisesRegex(
                        TypeError, f"{name} is .*; expected True or False"):
                    call()
        self.same(lambda x: nvfp4gemm.mm(x, self.weight, batch_invariant=np.bool_(True)), self.x)

    def test_numbers_of_other_packages_are_real(self):
        w, linear = self.weight, self.weight.with_scales("linear").scales
        for wrong in (np.ones(1, np.complex64), np.zeros(1, [("a", "f4")]), np.array(["x"])):
            for name, call in (
                    ("scale|tensor_scale", lambda: layouts.from_ggml(
                        np.zeros(36, np.uint8), 1, 64, wrong)),
                    ("global_scale|tensor_scale", lambda: layouts.from_flashinfer(
                        w.codes, w.scales, wrong)),
                    ("amax", lambda: layouts.from_transformer_engine(
                        w.codes, w.scales, wrong, swizzled=True)),
                    ("tensor_scale", lambda: checkpoints.weight(w.codes, linear, wrong))):
                with self.subTest(name=name, wrong=wrong.dtype), self.assertRaisesRegex(
                        TypeError, rf"\b({name}) is of .*; expected a real number"):
                    call()
        for wrong in (1j, "x", None):
            with self.assertRaisesRegex(TypeError, "e4m3_max is"):
                layouts.from_transformer_engine(w.codes, w.scales, 1.0, swizzled=True,
                                                e4m3_max=wrong)

    def test_rows_and_columns_of_a_slice_are_integers(self):
        for cut in (self.weight.slice_rows, self.weight.slice_k):
            for begin, end, name in ((None, 32, "begin"), (0, "3", "end"), (0, 32.0, "end")):
                with self.assertRaisesRegex(TypeError, f"{name} is .*; expected an integer"):
                    cut(begin, end)


if __name__ == "__main__":
    unittest.main()
