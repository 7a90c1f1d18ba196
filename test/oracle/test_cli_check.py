# SPDX-License-Identifier: MIT
"""nvfp4 check on one small checkpoint of each dialect, and on each with every single mistake: what
nvfp4gemm.checkpoints refuses it names, with the same file, layer and tensor. The files are those of
tools/python/test/dialect_files.py."""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import nvfp4
from test_cli import PROGRAM

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../../tools/python/test"))
import dialect_files as files  # noqa: E402
import folder_files  # noqa: E402
import random_folders  # noqa: E402
import test_python_dialects as dialects  # noqa: E402
import test_python_files as hostile  # noqa: E402
from nvfp4gemm import checkpoints  # noqa: E402


def check(*words):
    """(exit code, text or JSON). No driver is asked, so that none need be there."""
    done = subprocess.run([PROGRAM, "check", *words], capture_output=True, text=True, timeout=60)
    if done.returncode == 2:
        return 2, done.stderr
    return done.returncode, json.loads(done.stdout) if "--json" in words else done.stdout


def without_parser(problem):
    """A problem without what a parser of JSON says in words of its own."""
    return re.sub("(is no JSON: |JSON that is none: ).*?(; expected JSON|$)", r"\1\2", problem)


def text(problem):
    """As it is printed: JSON has the control characters that lines escape."""
    return "".join(c if " " <= c <= "~" else f"\\x{ord(c):02x}" if ord(c) < 256 else
                   f"\\u{ord(c):04x}" for c in problem)


class Check(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "model [1]")
        os.mkdir(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def emptied(self):
        shutil.rmtree(self.folder)
        os.mkdir(self.folder)

    def test_correct(self):
        for name, make in files.DIALECTS.items():
            with self.subTest(name):
                file = make()
                file.write(self.path("m." + file.kind))
                code, said = check(self.folder, "--json")
                self.assertEqual((code, said["wrong"]), (0, 0), said)
                self.assertEqual([layer["layer"] for layer in said["layers"]],
                                 sorted(file.expected))
                for layer in said["layers"]:
                    values = file.expected[layer["layer"]]
                    self.assertEqual((layer["n"], layer["k"]), values.shape)
                    self.assertEqual(layer["dialect"], name.removesuffix("_metadata"))
                    block = 32 if name in files.MXFP4 and "ue8m0" not in name else 16
                    self.assertEqual(sum(layer["scale_exponents"]), values.size // block)
                code, text = check(self.folder)
                self.assertEqual((code, text.count("ok  ")), (0, len(file.expected)))
                self.emptied()

    def refused(self, file, tensor, said):
        path = self.path("m." + file.kind)
        file.write(path)
        code, answer = check(path if said else self.folder, "--json")
        problems = [layer for layer in answer["layers"] if layer.get("problem")]
        self.assertEqual((code, answer["wrong"], len(problems)), (1, 1, 1), answer)
        bad = dialects.bad_layer(file)
        self.assertIn(f"{path}: layer {bad}: {tensor}", problems[0]["problem"])
        self.assertIn("; expected ", problems[0]["problem"])
        if said:
            self.assertRegex(problems[0]["problem"], said)
        loaded = checkpoints.load(path if said else self.folder, strict=False)[1]
        self.assertEqual([without_parser(one["problem"]) for one in problems],
                         [without_parser(str(one)) for one in loaded])
        good = {name for name in file.expected if "bad" not in name}
        self.assertLessEqual(good, {layer["layer"] for layer in answer["layers"]
                                    if not layer["problem"]})

    def test_each_mistake_is_named(self):
        tried = 0
        for what, names, spoil, said in dialects.MISTAKES:
            for dialect in names:
                with self.subTest(f"{dialect}: {what}"):
                    file = files.DIALECTS[dialect]()
                    if what == "unknown suffix":
                        sign = "_" if dialect in ("stacked", "mxfp4") else "."
                        tensor = dialects.beside(f"{sign}zero_point", *files.f32(1))(file)
                        said = "is what .* does not have beside a weight; expected none but "
                    elif spoil is None:
                        tensor = dialects.beside(dialects.INPUT[dialect], *files.f32(0))(file)
                    else:
                        tensor = spoil(file)
                    if dialect in ("stacked", "mxfp4") and what in (
                            "negative scale", "NaN over codes", "NaN with a sign"):
                        tensor += "[0]"
                    self.refused(file, tensor, said)
                    self.emptied()
                    tried += 1
        self.assertGreater(tried, 120)

    def test_each_folder(self):
        for what, make, good, wrong in folder_files.CASES:
            with self.subTest(what):
                self.emptied()
                make().write(self.folder)
                code, said = check(self.folder, "--json")
                self.assertEqual((code, bool(said["wrong"])), (bool(wrong),) * 2)
                self.assertEqual(self.as_loaded(said), sorted(good))
                self.assertRegex(check(self.folder)[1], r"^[^\0-\x09\x0b-\x1f\x7f-\x9f]*$")

    def as_loaded(self, said):
        """The good layers, where checkpoints.load() has the same and says the same of the others,
        word for word, but for the words of a JSON parser. Of stacked experts it has none where one
        is bad, and names the first."""
        problems = [one["problem"] for one in said["files"] + said["layers"] if one["problem"]]
        self.assertEqual(said["wrong"], len(problems))
        bad = {}
        for one in said["layers"]:
            if one["problem"]:
                bad.setdefault(one["layer"].partition("[")[0], one["problem"])
        problems = [one["problem"] for one in said["files"] if one["problem"]] + list(bad.values())
        layers, loaded = checkpoints.load(self.folder, strict=False)
        self.assertEqual(sorted(without_parser(text(one)) for one in problems),
                         sorted(without_parser(str(one)) for one in loaded))
        good = [one["layer"] for one in said["layers"]
                if one["layer"].partition("[")[0] not in bad]
        self.assertEqual(sorted(good), sorted(layers))
        return good

    def test_random_folders(self):
        loaded = 0
        for seed in range(int(os.environ.get("NVFP4_FOLDERS", 200))):
            with self.subTest(seed):
                self.emptied()
                random_folders.folder(seed).write(self.folder)
                loaded += bool(self.as_loaded(check(self.folder, "--json")[1]))
        self.assertGreater(loaded, 20)

    def test_a_file_that_no_index_names_is_said(self):
        folder = folder_files.two().index()
        folder.shards["stale.safetensors"] = folder_files.layer("m.0", 9)
        folder.write(self.folder)
        code, said = check(self.folder)
        self.assertEqual(code, 0)
        self.assertRegex(said, r"unused +.*stale.safetensors: .*index.json does not name it")

    def test_one_name_in_two_files(self):
        file = files.compressed_tensors()
        tensor = file.roles["scales"]
        files.safetensors(self.path("second.safetensors"), {tensor: file.tensors[tensor]})
        self.refused(file, tensor, None)

    def test_hostile_files(self):
        path = self.path("w.safetensors")
        for what, text, data, _ in hostile.HOSTILE:
            with self.subTest(what):
                files.raw_safetensors(path, text, data)
                code, said = check(path, "--json")
                self.assertEqual((code, said["wrong"], said["layers"]), (1, 1, []))
                self.assertIn(f"{path} is no safetensors file: ", said["files"][0]["problem"])
        for size in (0, 5, (1 << 64) - 1):
            files.raw_safetensors(path, b"{  }", b"", size)
            self.assertEqual(check(path)[0], 1)
        file = files.ggml()
        file.write(path := self.path("m.gguf"))
        with open(path, "rb") as whole:
            data = whole.read()
        for size in [*range(0, 400, 31), len(data) - 1]:
            with open(path, "wb") as out:
                out.write(data[:size])
            code, said = check(path, "--json")
            self.assertEqual((code, said["layers"]), (1, []))
        for head in (struct.pack("<IQQ", 3, 1 << 63, 0),
                     struct.pack("<IQQQ", 3, 1, 0, 1) + b"\xff" + bytes(99)):
            with open(path, "wb") as out:
                out.write(b"GGUF" + head)
            code, said = check(path, "--json")
            self.assertEqual((code, said["wrong"]), (1, 1))

    def test_arguments(self):
        code, text = check(self.path("none"))
        self.assertEqual(code, 2)
        self.assertEqual(check(self.folder)[0], 2)  # nothing that could be a checkpoint
        files.safetensors(self.path("x.safetensors"), {"w": files.f32(1)})
        self.assertEqual(check(self.folder)[0], 1)  # and none of its layers are NVFP4


def quantized(w):
    """(codes, scales, tensor scale) of w, by ModelOpt's description."""
    t = np.abs(w).max() / np.float32(2688)
    scales = np.abs(w.reshape(len(w), -1, 16)).max(2) / 6 / t
    scales = np.maximum(scales, 2.0 ** -9).astype(nvfp4.ml_dtypes.float8_e4m3fn)
    codes = w / np.repeat(scales.astype(np.float32) * t, 16, axis=1)
    codes = np.clip(codes, -6, 6).astype(nvfp4.ml_dtypes.float4_e2m1fn).view(np.uint8) & 15
    return codes, scales.view(np.uint8), t


class Judged(unittest.TestCase):
    """What no name or type says: the values, beside a reference, and their order."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = os.path.join(folder.name, "m.safetensors")
        self.reference = os.path.join(folder.name, "reference")
        os.mkdir(self.reference)
        rng = np.random.default_rng(5)
        rows = np.exp2(0.3 * rng.standard_normal((256, 1)))
        self.w = (rng.standard_normal((256, 1024)) * rows * 0.02).astype(np.float32)
        files.safetensors(os.path.join(self.reference, "w.safetensors"), {
            "a.up_proj.weight": ("BF16", self.w.view(np.uint16)[:, 1::2].copy())})
        # What bfloat16 keeps.
        self.w = (self.w.view(np.uint32) & 0xFFFF0000).view(np.float32)
        self.codes, self.scales, self.t = quantized(self.w)

    def layer(self, codes=None, scales=None, factor=1.0, beside_reference=True, **more):
        files.safetensors(self.file, {
            "a.up_proj.weight": ("U8", files.packed(self.codes if codes is None else codes)),
            "a.up_proj.weight_scale": ("F8_E4M3", self.scales if scales is None else scales),
            "a.up_proj.weight_scale_2": files.scalar(self.t * factor), **more})
        more = ("--reference", self.reference) if beside_reference else ()
        return check(self.file, "--json", *more)

    def test_a_right_one(self):
        code, said = self.layer()
        layer = said["layers"][0]
        self.assertEqual(code, 0, said)
        self.assertLess(layer["error"], 0.11)
        self.assertLess(abs(layer["error"] - layer["error_anew"]), 0.005)
        self.assertLess(layer["other_layout_ratio"], 1)

    def test_each_way_to_be_wrong(self):
        exchanged = self.codes.reshape(256, -1, 2)[:, :, ::-1].reshape(256, 1024)
        for what, arguments in (("tiles", {"scales": files.tiled(self.scales)}),
                                ("nibbles", {"codes": exchanged}), ("scale", {"factor": 2})):
            with self.subTest(what):
                code, said = self.layer(**arguments)
                self.assertEqual(code, 1)
                problem = said["layers"][0]["problem"]
                said = "is read as linear, but its rows and columns explain"
                if what != "tiles":
                    said = r"up_proj.weight is [01]\..* of the reference's norm away from it"
                self.assertRegex(problem, said)
        files.safetensors(self.file, {
            "a.w.weight": ("U8", files.packed(self.codes, True)), "a.w.weight_scale": (
                "F8_E4M3", self.scales), "a.w.weight_scale_2": files.scalar(self.t),
            "a.w.comfy_quant": ("U8", np.frombuffer(b'{"format": "nvfp4"}', np.uint8))})
        code, said = check(self.file, "--json")
        self.assertIn("read as 128x4 tiles, but its rows and columns",
                      said["layers"][0]["problem"])

    def test_a_reference_without_the_layer_is_refused(self):
        path = os.path.join(self.reference, "w.safetensors")
        for what, tensors, said in (
                ("another layer", {"b.weight": ("BF16", np.zeros((2, 2), np.uint16))}, "missing"),
                ("8 bits", {"a.up_proj.weight": ("I8", np.zeros((2, 2), np.uint8))}, "of I8")):
            with self.subTest(what):
                files.safetensors(path, tensors)
                code, text = self.layer()
                self.assertEqual(code, 2)
                self.assertRegex(text, "the reference has none of the layers in 16 or 32 bits: "
                                       f"a.up_proj.weight is {said}")

    def test_a_reference_without_one_layer(self):
        more = {"a.gate_proj" + name.removeprefix("a.up_proj"): tensor for name, tensor in {
            "a.up_proj.weight": ("U8", files.packed(self.codes)),
            "a.up_proj.weight_scale": ("F8_E4M3", self.scales),
            "a.up_proj.weight_scale_2": files.scalar(self.t)}.items()}
        code, said = self.layer(**more)
        self.assertEqual((code, said["wrong"]), (1, 1))
        self.assertRegex(said["layers"][0]["problem"],
                         "a.gate_proj.weight is not in the reference in 16 or 32 bits; expected")

    def test_pre_quant_scale_counts(self):
        smooth = np.linspace(0.5, 2, 1024, dtype=np.float32)
        self.codes, self.scales, self.t = quantized(self.w / smooth)
        code, said = self.layer(**{"a.up_proj.pre_quant_scale": ("F32", smooth)})
        self.assertEqual(code, 0, said)
        self.assertLess(said["layers"][0]["error"], 0.11)
        self.assertEqual(self.layer()[0], 1)

    def test_parts_that_are_fused(self):
        code, said = self.layer(beside_reference=False, **{
            "a.gate_proj.weight": ("U8", files.packed(self.codes)),
            "a.gate_proj.weight_scale": ("F8_E4M3", self.scales),
            "a.gate_proj.weight_scale_2": files.scalar(self.t * 4)})
        self.assertEqual(code, 0)
        (fused,) = said["fused"]
        self.assertAlmostEqual(fused["ratio"], 4, places=5)
        self.assertEqual((fused["layer"], fused["parts"], fused["columns"]),
                         ("a.gate_up_proj", "a.gate_proj, a.up_proj", 256))

    def test_fused_names_rows_and_experts(self):
        def attention(rows, factors):
            arrays = {}
            for part, n, factor in zip("qkv", rows, factors):
                arrays.update({
                    f"a.{part}_proj.weight": ("U8", files.packed(self.codes[:n])),
                    f"a.{part}_proj.weight_scale": ("F8_E4M3", self.scales[:n]),
                    f"a.{part}_proj.weight_scale_2": files.scalar(self.t * factor)})
            return self.layer(beside_reference=False, **arrays)[1]["fused"]

        for rows, columns in (((256, 64, 128), 64), ((256, 96, 96), None)):
            (fused,) = attention(rows, (1, 2, 8))
            self.assertEqual((fused["layer"], fused["columns"]), ("a.qkv_proj", columns))
            self.assertAlmostEqual(fused["ratio"], 8, places=5)
        self.assertEqual(attention((256, 64, 64), (2, 2, 2)), [])
        experts = {}
        for part, factors in (("gate_proj", (1, 2)), ("up_proj", (1, 4))):
            experts.update({
                f"e.{part}": ("U8", np.stack([files.packed(self.codes)] * 2)),
                f"e.{part}_weight_scale": ("F8_E4M3", np.stack([self.scales] * 2)),
                f"e.{part}_weight_scale_2": files.f32(*(self.t * np.float32(factors)))})
        (fused,) = self.layer(beside_reference=False, **experts)[1]["fused"]
        self.assertEqual((fused["layer"], fused["parts"]),
                         ("e.gate_up_proj[1]", "e.gate_proj[1], e.up_proj[1]"))

    def test_blocks_are_counted(self):
        self.codes[0, :32], self.scales[1, :3], self.scales[2, 0] = 0, 0x7E, 0
        self.codes[1, :48], self.codes[2, :16], self.scales[0, 0] = 3, 3, 0x7F
        largest = int((self.scales == 0x7E).sum())
        self.assertGreaterEqual(largest, 3)
        layer = self.layer()[1]["layers"][0]
        self.assertEqual([layer[key] for key in ("blocks", "zero_blocks", "saturated_blocks",
                                                 "lost_blocks", "nan_over_zeros")],
                         [256 * 64, 2, largest, 1, 1])


if __name__ == "__main__":
    unittest.main()
