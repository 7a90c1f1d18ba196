# SPDX-License-Identifier: MIT
"""The images in the library: each fat binary unpacks to the file that it was made of, by an LZ4
reader written from lz4's description of the block format."""
import glob
import os
import struct
import unittest

import nvfp4

KERNELS = os.environ.get("NVFP4_KERNELS") or os.path.join(nvfp4.BUILD, "kernel")
PTX, CUBIN = 1, 2


def unpack(packed):
    """One LZ4 block."""
    at, out = 0, bytearray()

    def length(nibble):
        nonlocal at
        while nibble >= 15:
            at += 1
            nibble += packed[at - 1]
            if packed[at - 1] < 255:
                break
        return nibble

    while True:
        token = packed[at]
        at += 1
        literals = length(token >> 4)
        out += packed[at:at + literals]
        at += literals
        if at == len(packed):
            return bytes(out)
        back = packed[at] | packed[at + 1] << 8
        at += 2
        for _ in range(length(token & 15) + 4):
            out.append(out[-back])


class Images(unittest.TestCase):
    def test_each_is_its_file_and_in_the_library(self):
        with open(os.path.join(nvfp4.BUILD, "libnvfp4gemm.so"), "rb") as file:
            library = file.read()
        images = sorted(glob.glob(os.path.join(KERNELS, "*.fatbin")))
        self.assertEqual(len(images), 10)
        for path in images:
            with self.subTest(os.path.basename(path)):
                with open(path, "rb") as file:
                    image = file.read()
                self.assertIn(image, library)
                with open(path.removesuffix(".fatbin"), "rb") as file:
                    source = file.read()
                magic, version, head, size = struct.unpack_from("<IHHQ", image)
                self.assertEqual((magic, version, head), (0xBA55ED50, 1, 16))
                self.assertEqual(head + size, len(image))
                kind, _, entry, stored, packed, _, minor, major, arch = struct.unpack_from(
                    "<HHIQIIHHI", image, head)
                self.assertEqual(head + entry + stored, len(image), "one entry")
                text = unpack(image[head + entry:head + entry + packed])
                if path.endswith(".cubin.fatbin"):
                    self.assertEqual(kind, CUBIN)
                    self.assertEqual(text, source)
                    continue
                self.assertEqual(kind, PTX)
                self.assertEqual(text, source + b"\0")
                # What the library takes the oldest driver from.
                self.assertTrue(
                    text.startswith(f".version {major}.{minor}\n.target sm_{arch}".encode()))


if __name__ == "__main__":
    unittest.main()
