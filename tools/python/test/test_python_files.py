# SPDX-License-Identifier: MIT
"""Files that nobody should trust: each is refused with a sentence that names it, as the package
safetensors refuses it, and a large checkpoint is read in time linear in its bytes."""
import json
import os
import struct
import tempfile
import unittest
import unittest.mock

import package  # noqa: F401
import numpy as np

import dialect_files as files
import nvfp4gemm
from nvfp4gemm import _files, _safetensors, checkpoints

try:
    import safetensors
except ImportError:
    safetensors = None

FINE = {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}


def one(**changes):
    return json.dumps({"w": {**FINE, **changes}}).encode()


# (what is wrong, header, bytes after it, what the sentence says)
HOSTILE = [
    ("no object", b"[1, 2]", b"", "its header is no JSON object"),
    ("no JSON", b"{,}", b"", "is no safetensors file"),
    ("no UTF-8", b'{"\xff": 1}', b"", "is no safetensors file"),
    ("a surrogate alone", b'{"\\ud800": {}}', b"", "a surrogate alone"),
    ("deep", b'{"w":' + b"[" * 100000 + b"]" * 100000 + b"}", b"", "nested too deeply"),
    ("a value in 65 containers", b'{"w":' + b"[" * 64 + b"1" + b"]" * 64 + b"}", b"",
     "nested too deeply"),
    ("a value in 64", b'{"w":' + b"[" * 63 + b"1" + b"]" * 63 + b"}", b"",
     "not described by dtype"),
    ("one key twice", b'{"w":' + json.dumps(FINE).encode() + b',"w":' + json.dumps(FINE).encode() +
     b"}", b"1234", "the key 'w' twice"),
    ("a number for a tensor", b'{"w": 3}', b"", "is not described by dtype"),
    ("no type", b'{"w": {"shape": [4], "data_offsets": [0, 4]}}', b"1234", "is not described by"),
    ("unknown type", one(dtype="U9"), b"1234", "is of 'U9', which is no type"),
    ("a list for a type", one(dtype=["U8"]), b"1234", r"is of \['U8'\], which is no type"),
    ("a negative size", one(shape=[-4]), b"1234", r"has the shape \[-4\]"),
    ("a size with a fraction", one(shape=[4.0]), b"1234", r"has the shape \[4.0\]"),
    ("true for a size", one(shape=[True, 4]), b"1234", r"has the shape \[True, 4\]"),
    ("a text for a shape", one(shape="4"), b"1234", "has the shape '4'"),
    ("a huge size", one(shape=[1 << 62, 1 << 62]), b"1234", "more than any file holds"),
    ("many huge sizes", one(shape=[1 << 60] * 50000), b"1234", "more than any file holds"),
    ("a number of 5,000 digits", b'{"w": {"dtype": "U8", "shape": [' + b"9" * 5000 + b']}}', b"",
     "is no safetensors file"),
    ("three offsets", one(data_offsets=[0, 2, 4]), b"1234", "has the data_offsets"),
    ("a negative offset", one(data_offsets=[-4, 0]), b"1234", "has the data_offsets"),
    ("offsets exchanged", one(data_offsets=[4, 0]), b"1234", "hold -4"),
    ("more bytes than the shape", one(data_offsets=[0, 5]), b"12345", "hold 5"),
    ("a gap at the start", one(data_offsets=[1, 5]), b"12345", "begins at byte 1, where 0"),
    ("too few bytes", one(), b"123", "3 bytes follow the header, and its tensors are 4"),
    ("too many bytes", one(), b"12345", "5 bytes follow the header, and its tensors are 4"),
    ("overlapping", json.dumps({"v": FINE, "w": {**FINE, "data_offsets": [2, 6]}}).encode(),
     b"123456", "begins at byte 2, where 4 is expected"),
    ("overlapping, and a gap of as many bytes", json.dumps(
        {"v": FINE, "w": {**FINE, "data_offsets": [2, 6]},
         "x": {**FINE, "data_offsets": [8, 12]}}).encode(), b"123456789012", "begins at byte 2"),
    ("metadata that are no text", b'{"__metadata__": {"a": 1}}', b"", "no object of strings"),
    ("metadata that are a list", b'{"__metadata__": []}', b"", "no object of strings"),
]
# The package reads these two.
LAXER_THERE = {"one key twice", "metadata that are a list"}


class Hostile(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.file = os.path.join(self.folder, "w.safetensors")

    def refused(self, said):
        with self.assertRaisesRegex(checkpoints.CheckpointError, said) as caught:
            checkpoints.load(self.folder)
        self.assertIn(self.folder, str(caught.exception))
        layers, problems = checkpoints.load(self.folder, strict=False)
        self.assertEqual((layers, len(problems), problems[0].layer), ({}, 1, None))

    def test_safetensors(self):
        for what, text, data, said in HOSTILE:
            with self.subTest(what):
                files.raw_safetensors(self.file, text, data)
                self.refused(said)
                if safetensors and what not in LAXER_THERE:
                    with self.assertRaises(safetensors.SafetensorError):
                        safetensors.safe_open(self.file, framework="np")

    def test_lengths_of_the_header(self):
        for size in (0, 3, 5, 1 << 20, (1 << 63) - 1, (1 << 64) - 1):
            with self.subTest(size):
                files.raw_safetensors(self.file, b"{  }", b"", size)
                self.refused("is no safetensors file")
        for count in range(8):
            with open(self.file, "wb") as out:
                out.write(b"\2\0\0\0\0\0\0\0"[:count])
            self.refused("is no safetensors file")

    def test_a_file_cut_anywhere(self):
        for dialect, step in (("modelopt", 997), ("ggml", 997)):
            file = files.DIALECTS[dialect]()
            path = os.path.join(self.folder, "m." + file.kind)
            file.write(path)
            with open(path, "rb") as whole:
                data = whole.read()
            for size in [*range(0, 400, 7), *range(400, len(data), step)]:
                with open(path, "wb") as out:
                    out.write(data[:size])
                self.refused("is no (safetensors|GGUF) file")
            os.remove(path)

    def test_gguf(self):
        path = os.path.join(self.folder, "w.gguf")
        head = struct.pack("<IQQ", 3, 1, 0)
        name = struct.pack("<Q", 1) + b"w"
        for what, data, said in (
                ("another magic", b"GGML" + head, "does not begin with GGUF"),
                ("another version", b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "version 1"),
                ("the other order of bytes", b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "version"),
                ("many tensors", b"GGUF" + struct.pack("<IQQ", 3, 1 << 63, 0), "are expected"),
                ("many settings", b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 63), "are expected"),
                ("a long name", b"GGUF" + head + struct.pack("<Q", 1 << 63), "are expected"),
                ("a name of bytes", b"GGUF" + head + struct.pack("<Q", 1) + b"\xff" + bytes(99),
                 "a name that is no UTF-8"),
                ("many dimensions", b"GGUF" + head + name + struct.pack("<I", 9), "9 dimensions"),
                ("rows of half a block", b"GGUF" + head + name + struct.pack("<IQIQ", 1, 65, 40, 0),
                 "no multiple of 64"),
                ("a huge tensor", b"GGUF" + head + name + struct.pack(
                    "<IQQIQ", 2, 64, 1 << 60, 40, 0), "does not end before"),
                ("between the steps", b"GGUF" + head + name + struct.pack("<IQIQ", 1, 1, 0, 4) +
                 b"\0" * 64, "no multiple of 32"),
                ("a nested array", b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + name + struct.pack(
                    "<IIQ", 9, 9, 1), "a setting of type 9"),
                ("no alignment", b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 17) +
                 b"general.alignment" + struct.pack("<II", 4, 3), "no power of two")):
            with self.subTest(what):
                with open(path, "wb") as out:
                    out.write(data)
                self.refused(said)

    def test_a_broken_file_does_not_stop_the_others(self):
        file = files.modelopt()
        file.write(os.path.join(self.folder, "good.safetensors"))
        files.raw_safetensors(self.file, b"{,}")
        layers, problems = checkpoints.load(self.folder, strict=False)
        self.assertEqual((sorted(layers), len(problems)), (["bad", "good"], 1))


class Linear(unittest.TestCase):
    def test_2000_layers_are_read_once(self):
        """Each header is parsed once, each file opened twice, each byte of data read once."""
        with tempfile.TemporaryDirectory() as folder:
            matrix = files.Matrix(3, 16, 32)
            parts = {".weight": ("U8", files.packed(matrix.codes)),
                     ".weight_scale": ("F8_E4M3", matrix.scales),
                     ".weight_scale_2": files.scalar(0.5)}
            for i in range(4):
                files.safetensors(os.path.join(folder, f"{i}.safetensors"), {
                    f"m.{i}.{j}{suffix}": tensor for j in range(500)
                    for suffix, tensor in parts.items()})
            parsed = unittest.mock.Mock(side_effect=_safetensors.parse_json)
            read = []
            bytes_of = _files.Reader.bytes_of
            with unittest.mock.patch.object(_safetensors, "parse_json", parsed), \
                    unittest.mock.patch.object(
                        _files.Reader, "bytes_of",
                        lambda self, tensor: read.append(tensor.size) or bytes_of(self, tensor)):
                layers = checkpoints.load(folder)
            self.assertEqual((len(layers), parsed.call_count), (2000, 4))
            self.assertEqual(sum(read), 2000 * (16 * 16 + 16 * 2 + 4))
            np.testing.assert_allclose(layers["m.3.499"].dequantize(), matrix.values(0.5),
                                       rtol=2e-7)


class Beside(unittest.TestCase):
    """What a checkpoint has beside a weight, in linear() and mm()."""

    def setUp(self):
        with tempfile.TemporaryDirectory() as folder:
            file = files.modelopt()
            rng = np.random.default_rng(8)
            self.scale = rng.random(files.K, np.float32) + 0.5
            file.tensors["bad.pre_quant_scale"] = "F32", self.scale
            file.tensors["bad.input_scale"] = files.scalar(0.002)
            path = os.path.join(folder, "m.safetensors")
            file.write(path)
            layers = checkpoints.load(path)
        self.weight, self.plain = layers["bad"], layers["good"]
        self.x = rng.standard_normal((3, files.K)).astype(np.float16)

    def test_pre_quant_scale_multiplies_x(self):
        plain = self.weight.beside(pre_quant_scale=None)
        scaled = (self.x.astype(np.float32) * self.scale).astype(np.float16)
        np.testing.assert_array_equal(nvfp4gemm.linear(self.x, self.weight),
                                      nvfp4gemm.linear(scaled, plain))
        self.assertFalse(np.array_equal(nvfp4gemm.linear(self.x, self.weight),
                                        nvfp4gemm.linear(self.x, plain)))
        with self.assertRaisesRegex(ValueError, "b has a pre_quant_scale"):
            nvfp4gemm.mm(self.x, self.weight)
        with self.assertRaisesRegex(ValueError, r"x is \(3, 16\); expected \(..., 208\)"):
            nvfp4gemm.linear(self.x[:, :16], self.weight)

    def test_input_scale_quantizes_x(self):
        plain = self.weight.beside(pre_quant_scale=None)
        a = nvfp4gemm.quantize(self.x, 0.002)
        np.testing.assert_array_equal(
            nvfp4gemm.linear(self.x, plain, quantize_input=True),
            nvfp4gemm.mm(a, plain, np.float16))
        np.testing.assert_array_equal(
            nvfp4gemm.linear(self.x, self.plain, quantize_input=True),
            nvfp4gemm.mm(nvfp4gemm.quantize(self.x, "rows"), self.plain, np.float16))

    def test_slices_keep_what_is_theirs(self):
        part = self.weight.beside(bias=np.arange(files.N)).slice_k(32, 96).slice_rows(3, 9)
        np.testing.assert_array_equal(part.pre_quant_scale, self.scale[32:96])
        np.testing.assert_array_equal(part.bias, range(3, 9))
        self.assertAlmostEqual(part.input_scale, 0.002)
        self.assertIsNotNone(part.with_scales("linear").pre_quant_scale)


if __name__ == "__main__":
    unittest.main()
