# SPDX-License-Identifier: MIT
"""The images in the library: each fat binary unpacks to the file that it was made of, by
libzstd."""
import ctypes
import glob
import os
import struct
import unittest

import nvfp4

KERNELS = os.environ.get("NVFP4_KERNELS") or os.path.join(nvfp4.BUILD, "kernel")
PTX, CUBIN = 1, 2


def unpack(packed, size):
    """One zstd frame of that many bytes."""
    decompress = ctypes.CDLL("libzstd.so.1").ZSTD_decompress
    decompress.restype = ctypes.c_size_t
    decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    out = ctypes.create_string_buffer(size)
    if decompress(out, size, packed, len(packed)) != size:
        raise ValueError(f"no zstd frame of {size} bytes")
    return out.raw


class Images(unittest.TestCase):
    def test_each_is_its_file_and_in_the_library(self):
        with open(os.path.join(nvfp4.BUILD, "libnvfp4gemm.so"), "rb") as file:
            library = file.read()
        images = sorted(glob.glob(os.path.join(KERNELS, "*.fatbin")))
        self.assertEqual(len(images), 24)
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
                size, = struct.unpack_from("<Q", image, head + 56)
                text = unpack(image[head + entry:head + entry + packed], size)
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
