# SPDX-License-Identifier: MIT
"""The drawings of the walk-through: as the kernel's constants have them now, and each cell where
the library, and another project's swizzle, put it."""
import ctypes
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import nvfp4

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DRAWN = os.path.join(ROOT, "docs", "drawings")


def titles(name):
    with open(os.path.join(DRAWN, name), encoding="utf-8") as file:
        return re.findall(r"<title>(.*?)</title>", file.read())


def cells(name):
    """byte -> (row, first k, last k)"""
    found = [
        re.fullmatch(r"byte (\d+): row (\d+), k (\d+) to (\d+)", title) for title in titles(name)
    ]
    return {int(cell[1]): tuple(map(int, cell.groups()[1:])) for cell in found}


class Drawings(unittest.TestCase):
    def test_they_are_those_of_the_kernel_now(self):
        with tempfile.TemporaryDirectory() as folder:
            program, numbers = os.path.join(folder, "numbers"), os.path.join(folder, "numbers.txt")
            cxx = os.environ.get("CXX", "g++").split()
            subprocess.run([*cxx, "-std=c++17", "-I.", "-o", program, "tools/draw/numbers.cc"],
                           cwd=ROOT,
                           check=True)
            with open(numbers, "w", encoding="ascii") as out:
                subprocess.run([program], stdout=out, check=True)
            subprocess.run([sys.executable, "tools/draw/draw.py", numbers, folder],
                           cwd=ROOT,
                           check=True)
            drawn = [name for name in os.listdir(folder) if name.endswith(".svg")]
            self.assertEqual(len(drawn), 4)
            for name in drawn:
                with open(os.path.join(folder, name)) as new, open(os.path.join(DRAWN,
                                                                                name)) as old:
                    self.assertEqual(new.read(), old.read(), f"{name}: make drawings")

    def test_the_tiles_are_those_that_are_compiled(self):
        """In both drawings, in their text and in the sentences of the page around them."""
        with open(os.path.join(ROOT, "kernel", "sm100", "tiles.def"), encoding="utf-8") as file:
            tiles = re.findall(r"^SM100_TILE\((\d+), +(\d+)\)", file.read(), re.M)
        self.assertGreater(len(tiles), 1)
        for name in ("shared-memory.svg", "tensor-memory.svg"):
            with open(os.path.join(DRAWN, name), encoding="utf-8") as file:
                self.assertEqual(re.findall(r">(\d+) weights x (\d+) tokens", file.read()), tiles)
        with open(os.path.join(ROOT, "kernel", "sm100", "README.md"), encoding="utf-8") as file:
            page = " ".join(file.read().split())
        named = [(weights, tokens)
                 for weights, every in re.findall(
                     r"(\d+) weights(?: \(rows of B\))? x ((?:\d+(?:, | or )?)+) tokens", page)
                 for tokens in re.findall(r"\d+", every)]
        self.assertEqual(named, tiles)

    def test_a_scale_is_drawn_where_the_library_puts_it(self):
        library = nvfp4.load()
        drawn = {}  # byte -> (row, block of 16 along K)
        for title in titles("scale-tile.svg"):
            first, last, row = map(int, re.fullmatch(
                r"bytes (\d+) to (\d+): row (\d+)", title).groups())
            self.assertEqual(last, first + 3)
            drawn.update({first + block: (row, block) for block in range(4)})
        self.assertEqual(sorted(drawn), list(range(512)))
        for row in range(128):
            for block in range(4):
                linear, tiled = np.zeros((128, 4), np.uint8), np.zeros(512, np.uint8)
                linear[row, block] = 1
                status = library.nvfp4_scale_convert_host(
                    linear.ctypes.data_as(ctypes.c_void_p), nvfp4.LAYOUT_LINEAR,
                    tiled.ctypes.data_as(ctypes.c_void_p), nvfp4.LAYOUT_128X4, 128, 64)
                self.assertEqual(status, 0)
                self.assertEqual(drawn[int(np.flatnonzero(tiled)[0])], (row, block))

    def test_the_swizzle_is_that_of_other_projects(self):
        """The hash is that of the first atom of CuTe's table, smem_swizzle_128x256_fp4."""
        place = {row * 128 + (k // 2 ^ row * 16): (row, k, k + 31)
                 for row in range(8) for k in range(0, 256, 32)}
        table = "swizzle,row,k,byte_offset,bit_shift\n" + "".join(
            f"SW128,{row},{k},{byte},0\n" for byte, (row, k, _) in place.items())
        self.assertEqual(hashlib.sha256(table.encode()).hexdigest(),
                         "610b0fd6dcba5ca44b6c007c492bcc9ad041e5fbb29eab4e68d80cc2c61e115f")
        self.assertEqual(len(place), 64)
        self.assertEqual(cells("swizzle.svg"), place)


if __name__ == "__main__":
    unittest.main()
