# SPDX-License-Identifier: MIT
"""The package of this checkout, on the library that was built."""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("NVFP4_BUILD", os.path.join(HERE, "../../../build")))
os.environ.setdefault("NVFP4GEMM_LIBRARY", os.path.join(BUILD, "libnvfp4gemm.so"))
sys.path.insert(0, os.path.join(HERE, ".."))

try:
    import numpy  # noqa: F401
except ImportError as error:
    raise unittest.SkipTest("this Python has no numpy") from error
