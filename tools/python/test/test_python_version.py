# SPDX-License-Identifier: MIT
"""The version: the header's, the library's, the package's; and that it is typed."""
import importlib.metadata
import os
import re
import unittest

import package  # noqa: F401

import nvfp4gemm

FOLDER = os.path.dirname(os.path.abspath(nvfp4gemm.__file__))
HEADER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../include/nvfp4_gemm.h")


def of_the_header():
    with open(HEADER, encoding="utf-8") as file:
        text = file.read()
    return ".".join(re.search(rf"^#define NVFP4_VERSION_{part} (\d+)$", text, re.M)[1]
                    for part in ("MAJOR", "MINOR", "PATCH"))


class Version(unittest.TestCase):
    def test_the_package_has_the_header_s(self):
        self.assertEqual(nvfp4gemm.__version__, of_the_header())
        self.assertEqual(nvfp4gemm.version(), of_the_header())

    @unittest.skipUnless(os.environ.get("NVFP4_INSTALLED"), "only what is installed has metadata")
    def test_its_metadata_have_it(self):
        self.assertEqual(importlib.metadata.version("nvfp4gemm"), of_the_header())


class Typed(unittest.TestCase):
    def test_the_package_says_that_it_has_types(self):
        self.assertTrue(os.path.exists(os.path.join(FOLDER, "py.typed")))


if __name__ == "__main__":
    unittest.main()
