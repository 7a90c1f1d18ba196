# SPDX-License-Identifier: MIT
"""The package of this checkout, on the library that was built; with NVFP4_INSTALLED set, the one
that is installed, on the library that it carries."""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("NVFP4_BUILD", os.path.join(HERE, "../../../build")))
if not os.environ.get("NVFP4_INSTALLED"):
    os.environ.setdefault("NVFP4GEMM_LIBRARY", os.path.join(BUILD, "libnvfp4gemm.so"))
    sys.path.insert(0, os.path.join(HERE, ".."))

try:
    import numpy  # noqa: F401
except ImportError as error:
    raise unittest.SkipTest("this Python has no numpy") from error
