# SPDX-License-Identifier: MIT
"""A checkpoint is its folder: what no single file says, by checkpoints.load(). test_cli_check.py
asks `nvfp4 check` the same."""
import os
import tempfile
import unittest

import package  # noqa: F401
import numpy as np

import dialect_files as files
import folder_files
from nvfp4gemm import checkpoints


class Folders(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_each_case(self):
        for number, (what, make, good, said) in enumerate(folder_files.CASES):
            with self.subTest(what):
                folder = os.path.join(self.folder, str(number))
                os.mkdir(folder)
                make().write(folder)
                layers, problems = checkpoints.load(folder, strict=False)
                self.assertEqual(sorted(layers), sorted(good))
                self.assertEqual(sorted(str(one.layer) for one in problems),
                                 sorted(map(str, said)), problems)
                for problem in problems:
                    self.assertRegex(str(problem), said[problem.layer])
                    self.assertRegex(str(problem), "^[ -~]*$")
                if problems:
                    with self.assertRaises(checkpoints.CheckpointError):
                        checkpoints.load(folder)

    def test_names_pick_layers_of_shards_that_are_there(self):
        folder_files.two().index().without("b").write(self.folder)
        self.assertEqual(list(checkpoints.load(self.folder, names=["m.0"])), ["m.0"])
        with self.assertRaisesRegex(checkpoints.CheckpointError, "which is missing"):
            checkpoints.load(self.folder, names=["m.1"])
        with self.assertRaisesRegex(checkpoints.CheckpointError, "b.safetensors is missing"):
            checkpoints.load(self.folder, names=["m.7"])

    def test_the_index_decides(self):
        folder_files.overlay().write(self.folder)
        layers = checkpoints.load(self.folder)
        np.testing.assert_array_equal(layers["m.0"].dequantize(),
                                      files.Matrix(7, 16, 64).values(0.005))
        np.testing.assert_array_equal(layers["m.1"].dequantize(),
                                      files.Matrix(2, 16, 64).values(0.005))

    def test_a_stray_file_with_known_names_does_not_count(self):
        folder = folder_files.two().index()
        folder.shards["stale.safetensors"] = folder_files.layer("m.0", 9)
        folder.write(self.folder)
        layers = checkpoints.load(self.folder)
        np.testing.assert_array_equal(layers["m.0"].dequantize(),
                                      files.Matrix(1, 16, 64).values(0.005))

    def test_one_file_has_the_configuration_beside_it(self):
        folder_files.rotated([folder_files.online("m.1")]).write(self.folder)
        path = os.path.join(self.folder, "a.safetensors")
        layers, problems = checkpoints.load(path, strict=False)
        self.assertEqual(list(layers), ["m.0"])
        self.assertRegex(str(problems[0]), folder_files.TRANSFORM)
        folder_files.two().index().write(self.folder)
        os.remove(os.path.join(self.folder, "config.json"))
        self.assertEqual(list(checkpoints.load(path)), ["m.0"])  # the index is the folder's

    def test_mxfp4_is_what_its_bytes_say(self):
        for kind, seed in (("ct.0", 1), ("quark.0", 3)):
            files.safetensors(path := os.path.join(self.folder, kind + ".safetensors"),
                              folder_files.mxfp4(kind, seed))
            weight = checkpoints.load(path)[kind]
            self.assertIn("mxfp4", weight.dialect)
            np.testing.assert_array_equal(weight.dequantize(), files.Mxfp4(seed, 16, 96).values())

    def test_by_torch_too(self):
        try:
            import torch  # noqa: F401
        except ImportError as missing:
            self.skipTest(str(missing))
        for number, (what, make, good, said) in enumerate(folder_files.CASES):
            with self.subTest(what):
                folder = os.path.join(self.folder, str(number))
                os.mkdir(folder)
                make().write(folder)
                layers, problems = checkpoints.load(folder, "cpu", strict=False)
                again = checkpoints.load(folder, strict=False)[1]
                self.assertEqual((sorted(layers), list(map(str, problems))),
                                 (sorted(good), list(map(str, again))))


if __name__ == "__main__":
    unittest.main()
