# SPDX-License-Identifier: MIT
"""pyproject.toml describes the package. This file checks that the package is complete: only the
folder that tools/python/wheel.sh makes for a wheel has the library and the tables."""
import os
import sys

from setuptools import setup

HERE = os.path.dirname(os.path.abspath(__file__))
PARTS = ("version.txt", "LICENSE", "nvfp4gemm/libnvfp4gemm.so.0", "nvfp4gemm/dialects.def",
         "nvfp4gemm/fields.def")

missing = [part for part in PARTS if not os.path.exists(os.path.join(HERE, part))]
if missing:
    sys.exit("tools/python is no package by itself: the library is not in it. At the root of the "
             "sources run `make setup-wheel wheel && pip install build/wheel/*.whl`")
setup()
